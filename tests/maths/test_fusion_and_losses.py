"""Fusion of the heads (algorithm 1), their weights and the loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from seunet.errors import InputError
from seunet.maths.fusion import FUSIONS, Calibration, confidence, fuse, head_weights, winning_scale
from seunet.maths.losses import overlap_loss_sums, scale_losses, weighted_loss


def algorithm_1(heads: np.ndarray, strategy: str) -> np.ndarray:
    """The paper's pseudo-code for one pixel, line by line: [γ, C] → [C]."""
    distances = []
    for y in heads.copy():
        p_max, index = y.max(), y.argmax()
        y[index] = -1
        distances.append(p_max - y.max())
    if strategy == "p_dist":
        return heads[int(np.argmax(distances))]
    weights = np.exp(distances) / np.exp(distances).sum()
    return (weights[:, None] * heads).sum(0)


@pytest.mark.parametrize("strategy", ["p_dist", "p_ens"])
@pytest.mark.parametrize("classes", [2, 5])
def test_fusion_equals_the_papers_pseudo_code_at_every_pixel(strategy: str, classes: int) -> None:
    probabilities = torch.randn(2, 5, classes, 4, 3, dtype=torch.float64).softmax(2)
    fused = fuse(probabilities, strategy)
    for b in range(2):
        for row in range(4):
            for column in range(3):
                expected = algorithm_1(probabilities[b, :, :, row, column].numpy(), strategy)
                np.testing.assert_allclose(fused[b, :, row, column], expected, atol=1e-12)


@pytest.mark.parametrize("strategy", FUSIONS)
def test_fused_probabilities_sum_to_one(strategy: str) -> None:
    fused = fuse(torch.randn(1, 5, 3, 6, 6).softmax(2), strategy)
    torch.testing.assert_close(fused.sum(1), torch.ones(1, 6, 6))


def test_the_mean_is_the_mean() -> None:
    probabilities = torch.rand(2, 4, 3, 5, 5)
    torch.testing.assert_close(fuse(probabilities, "mean"), probabilities.mean(1))


def test_of_equally_confident_heads_the_finest_wins() -> None:
    head = torch.tensor([0.9, 0.1])
    probabilities = torch.stack([torch.tensor([0.6, 0.4]), head, head.flip(0)])[None, :, :, None, None]
    assert int(winning_scale(probabilities)) == 1
    assert fuse(probabilities, "p_dist").flatten().tolist() == pytest.approx([0.9, 0.1])


def test_two_equal_largest_probabilities_have_no_confidence() -> None:
    assert float(confidence(torch.tensor([0.4, 0.4, 0.2])[None, None, :, None, None])) == 0


def test_a_single_class_is_its_own_confidence() -> None:
    assert float(confidence(torch.full((1, 1, 1, 1, 1), 0.7))) == pytest.approx(0.7)


def test_an_unknown_fusion_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown fusion 'p_dst'; did you mean 'p_dist'"):
        fuse(torch.rand(1, 1, 2, 1, 1), "p_dst")


def test_fusion_needs_the_scale_axis() -> None:
    with pytest.raises(InputError, match=r"shape \[1, 2, 4, 4\] must be \[batch, scales, classes, height, width\]"):
        fuse(torch.rand(1, 2, 4, 4))


def test_head_weights_are_positive_sum_to_one_and_stay_in_the_papers_range() -> None:
    for eta in (torch.zeros(5), torch.tensor([50.0, 0, 0, 0, 0]), torch.randn(5)):
        weights = head_weights(eta)
        assert float(weights.sum()) == pytest.approx(1)
        assert float(weights.min()) >= 0.1 - 1e-6
        assert float(weights.max()) <= 0.6 + 1e-6
    assert head_weights(torch.zeros(5)).tolist() == pytest.approx([0.2] * 5)


def test_each_scales_loss_is_the_mean_cross_entropy_over_labelled_pixels() -> None:
    logits = torch.randn(2, 5, 3, 8, 8)
    target = torch.randint(0, 3, (2, 8, 8))
    target[:, :3] = 255
    losses = scale_losses(logits, target)
    for k in range(5):
        torch.testing.assert_close(losses[k], cross_entropy(logits[:, k], target, ignore_index=255))
    assert float(weighted_loss(losses, torch.full((5,), 0.2))) == pytest.approx(float(losses.mean()))


def test_with_nothing_labelled_the_loss_is_zero_and_so_is_its_gradient() -> None:
    logits = torch.randn(1, 2, 2, 4, 4, requires_grad=True)
    scale_losses(logits, torch.full((1, 4, 4), 255)).sum().backward()
    assert logits.grad is not None
    assert float(logits.grad.abs().max()) == 0


def test_a_class_that_the_model_does_not_know_is_named() -> None:
    with pytest.raises(InputError, match="`target` holds class 7; the model knows 0 … 1 and 255 for ignore"):
        scale_losses(torch.zeros(1, 1, 2, 2, 2), torch.full((1, 2, 2), 7))


def test_a_target_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"`target` of shape \[1, 3, 2\] must be \[1, 2, 2\]"):
        scale_losses(torch.zeros(1, 1, 2, 2, 2), torch.zeros(1, 3, 2, dtype=torch.long))


def heads_of_three(side: int = 9) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(2, 4, 3, side, side, dtype=torch.float64).mul(3).softmax(2)


def test_a_calibration_that_knows_nothing_is_one_of_the_papers_fusions() -> None:
    probabilities = heads_of_three()
    ones, zeros = (1.0,) * 4, (0.0,) * 4
    for sharpness, name in ((0.0, "mean"), (1.0, "p_ens"), (1e6, "p_dist")):
        torch.testing.assert_close(
            fuse(probabilities, Calibration(ones, zeros, sharpness)), fuse(probabilities, name), atol=1e-9, rtol=0
        )


def test_a_prior_and_temperatures_weigh_the_heads() -> None:
    probabilities = heads_of_three()
    alone = fuse(probabilities, Calibration((1.0, 1.0, 2.0, 1.0), (-99.0, -99.0, 0.0, -99.0), 1.0))
    cooled = (probabilities[:, 2].log() / 2).softmax(1)
    torch.testing.assert_close(alone, cooled)
    both = fuse(probabilities, Calibration((1.0,) * 4, (0.0, -99.0, -99.0, float(torch.tensor(3.0).log())), 0.0))
    torch.testing.assert_close(both, 0.25 * probabilities[:, 0] + 0.75 * probabilities[:, 3])


def test_a_calibrated_fusion_is_a_distribution_where_a_class_is_impossible() -> None:
    probabilities = torch.tensor([1.0, 0.0]).view(1, 1, 2, 1, 1).expand(1, 2, 2, 3, 3)
    fused = fuse(probabilities, Calibration((0.5, 2.0), (0.0, 0.0), 1.0))
    assert torch.isfinite(fused).all()
    torch.testing.assert_close(fused.sum(1), torch.ones(1, 3, 3))


def test_a_calibrated_fusion_of_a_part_has_the_bits_of_the_whole() -> None:
    probabilities = heads_of_three(33).float()
    calibration = Calibration((0.8, 1.0, 1.3, 2.0), (0.0, -0.3, -1.0, -2.0), 1.7)
    whole, part = fuse(probabilities, calibration), fuse(probabilities[..., 5:18, 7:30].contiguous(), calibration)
    assert torch.equal(whole[..., 5:18, 7:30], part)


def test_a_calibration_must_fit_the_heads() -> None:
    with pytest.raises(InputError, match="a calibration of 2 heads does not fit predictions of 4"):
        fuse(heads_of_three(), Calibration((1.0, 1.0), (0.0, 0.0), 1.0))


def window_overlap(probabilities: torch.Tensor, mask: torch.Tensor) -> float:
    """Mean over the classes of (1 + I)/(1 + U), pixel by pixel: [C, H, W], [H, W]."""
    found = []
    for code, chances in enumerate(probabilities):
        inside = together = 1.0
        for p, label in zip(chances.flatten().tolist(), mask.flatten().tolist(), strict=True):
            if label != 255:
                inside += p * (label == code)
                together += p + (label == code) - p * (label == code)
        found.append(inside / together)
    return float(np.mean(found))


def test_the_overlap_loss_is_one_minus_the_iou_of_the_probabilities_of_each_window() -> None:
    logits = torch.randn(3, 2, 3, 6, 5, dtype=torch.float64)
    target = torch.randint(0, 3, (3, 6, 5))
    target[0, :2], target[2] = 255, 1
    chances = logits.softmax(2)
    counted = (target != 255).sum((1, 2)).tolist()
    expected = [sum(counted[b] * (1 - window_overlap(chances[b, k], target[b])) for b in range(3)) for k in range(2)]
    torch.testing.assert_close(overlap_loss_sums(logits, target), torch.tensor(expected, dtype=torch.float64))
    parts = [overlap_loss_sums(logits[part], target[part]) for part in (slice(0, 1), slice(1, 3))]
    torch.testing.assert_close(sum(parts), overlap_loss_sums(logits, target))
    doubt = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.5, 1.0]], dtype=torch.float64)
    unsure = [0.5 * counted[2] * (1 - window_overlap(chances[2, 0], target[2])), 0.0]
    unsure[1] = counted[0] * (1 - window_overlap(chances[0, 1], target[0]))
    torch.testing.assert_close(
        overlap_loss_sums(logits, target, doubt=doubt), torch.tensor(unsure, dtype=torch.float64)
    )


def test_the_overlap_loss_takes_the_rim_for_its_object_and_nothing_for_all() -> None:
    target = torch.tensor([[[0, 1, 2, 2]]])
    sure = 40 * torch.nn.functional.one_hot(torch.tensor([[[0, 2, 1, 2]]]), 3).permute(0, 3, 1, 2)[:, None].double()
    assert float(overlap_loss_sums(sure, target, rim=2)) == pytest.approx(0, abs=1e-12)
    assert float(overlap_loss_sums(sure, target)) > 0.5
    assert float(overlap_loss_sums(sure, torch.full_like(target, 255))) == 0
