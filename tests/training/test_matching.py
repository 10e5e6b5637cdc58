"""Each head on windows of its own magnification; the loss of what the heads say together; averaged weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import seunet
from seunet.data import Augmentation, draw, octaves_outside
from seunet.errors import InputError
from seunet.layers import ScaleNorm2d
from seunet.maths import fuse
from seunet.models import ScaleUNet, create_model
from seunet.training.checkpoint import read_checkpoint
from seunet.training.config import RecipeSection
from seunet.training.head_bands import head_scales, scale_bands
from seunet.training.loading import ShareSampler, Sources
from seunet.training.optimizer import make_optimizer, set_pace
from seunet.training.starting import start_model
from seunet.training.trainer import Batch, LossOf, Trainer
from support.training import ALONE, tiny_config, train_alone

OWN = {
    "model__preset": "geometric",
    "model__head_weights": "uniform",
    "data__augmentation": {"crop_px": 24, "scale_range": [0.25, 4.0]},
    "recipe__batch": 5,
    "recipe__first_head_scale": 0.5,
}
"""`tiny_config` with a window for each head."""


def frozen_model() -> ScaleUNet:
    """Running statistics that differ by scale, so that a window in the place of another would be seen."""
    torch.manual_seed(4)
    model = create_model("seunet", widths=[10, 20], preset="geometric", head_weights="uniform").double()
    for module in model.modules():
        if isinstance(module, ScaleNorm2d):
            nn.init.uniform_(module.norm.running_var, 0.5, 2)  # type: ignore[arg-type]
            nn.init.uniform_(module.norm.running_mean, -0.2, 0.2)  # type: ignore[arg-type]
    return model.eval()


def windows(count: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(5)
    masks = torch.randint(0, 2, (count, 16, 16))
    masks[:, :3] = 255
    return torch.rand(count, 3, 16, 16, dtype=torch.float64), masks


def pixel_losses(probabilities: Tensor, masks: Tensor, weights: tuple[float, float]) -> Tensor:
    """−w_c log p_c of every labelled pixel, from the definition: [labelled pixels]."""
    labelled = masks != 255
    classes = masks[labelled]
    chosen = probabilities.movedim(-3, -1)[labelled].gather(-1, classes[:, None])[:, 0]
    return -torch.tensor(weights, dtype=torch.float64)[classes] * chosen.log()


def test_an_image_for_each_scale_is_seen_by_that_scale_alone() -> None:
    model, (images, _) = frozen_model(), windows(10)
    together = model(images.view(2, 5, 3, 16, 16))
    for number in range(10):
        alone = model(images[number : number + 1])[0, number % 5]
        torch.testing.assert_close(together[number // 5, number % 5], alone, rtol=1e-10, atol=1e-12)


def test_a_network_without_scales_does_not_take_an_image_for_each() -> None:
    with pytest.raises(InputError, match=r"`images` of shape \[1, 5, 3, 16, 16\] must be \[batch, 3, height, width\]"):
        create_model("unet", widths=[4, 8])(torch.rand(1, 5, 3, 16, 16))


def test_the_loss_of_own_windows_is_that_of_each_window_by_its_head() -> None:
    model, (images, masks) = frozen_model(), windows(10)
    loss_of = LossOf(model, RecipeSection(class_weights=(1.0, 2.0), first_head_scale=1.0))
    loss, parts = loss_of(images, masks, torch.zeros(10), (masks != 255).sum())
    found = [model(images[n : n + 1])[0, n % 5].softmax(0) for n in range(10)]
    each = [pixel_losses(p, mask, (1.0, 2.0)) for p, mask in zip(found, masks, strict=True)]
    torch.testing.assert_close(loss, torch.cat(each).mean())
    torch.testing.assert_close(parts[1:], torch.stack([torch.cat([each[k], each[k + 5]]).mean() for k in range(5)]))
    torch.testing.assert_close(parts[0], loss.detach())


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_fused_share_is_the_loss_of_what_the_heads_say_together(share: float) -> None:
    model, (images, masks) = frozen_model(), windows(3)
    loss_of = LossOf(model, RecipeSection(class_weights=(1.0, 3.0), fused_share=share))
    loss, _ = loss_of(images, masks, torch.zeros(3), (masks != 255).sum())
    probabilities = model(images).softmax(2)
    fused = pixel_losses(fuse(probabilities, "p_ens"), masks, (1.0, 3.0)).mean()
    heads = torch.stack([pixel_losses(probabilities[:, k], masks, (1.0, 3.0)).mean() for k in range(5)]).mean()
    torch.testing.assert_close(loss, (1 - share) * heads + share * fused)
    assert abs(float((heads - fused).detach())) > 1e-4


@pytest.mark.parametrize("own", [None, 1.0])
def test_the_overlap_share_is_that_of_each_heads_loss(own: float | None) -> None:
    model, (images, masks) = frozen_model(), windows(10)
    given = (images, masks, torch.zeros(10), (masks != 255).sum())

    def losses(share: float) -> torch.Tensor:
        recipe = RecipeSection(class_weights=(1.0, 2.0), first_head_scale=own, overlap_share=share)
        return LossOf(model, recipe)(*given)[1]

    cross_entropy, overlap = losses(0.0), losses(1.0)
    torch.testing.assert_close(losses(0.25), 0.75 * cross_entropy + 0.25 * overlap)
    assert bool((overlap[1:] != cross_entropy[1:]).all())
    assert 0 < float(overlap[0]) < 1


def test_heads_fit_magnifications_that_rise_as_their_sigmas_do() -> None:
    model = create_model("seunet", widths=[10, 20], preset="geometric")
    scales = torch.tensor(head_scales(model, 0.5))
    sigmas = model.sigmas()[0].detach()
    torch.testing.assert_close(scales / scales[0], sigmas / sigmas[0])
    assert float(scales[0]) == 0.5


def test_bands_fill_the_range_and_meet_half_way_between_heads() -> None:
    bands = scale_bands([0.5, 1.0, 2.0], (0.25, 8.0))
    assert [band[0] for band in bands] == pytest.approx([0.25, 0.5**0.5, 2**0.5])
    assert [band[1] for band in bands] == pytest.approx([0.5**0.5, 2**0.5, 8.0])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model__preset": "paper"}, "heads whose σ rise by one ratio"),
        ({"data__augmentation": {"crop_px": 24}}, "set `data.augmentation.scale_range`"),
        ({"data__augmentation": {"crop_px": 24, "scale_range": [1.0, 4.0]}}, "does not reach all heads"),
        ({"recipe__batch": 4}, "`recipe.batch` (=4) must be divisible by the 5 heads, each"),
        ({"recipe__batch": 5, "recipe__accumulate": 2}, "divisible by the 5 heads × 2 parts"),
        ({"recipe__frozen_norms": True}, "`recipe.frozen_norms` needs statistics to leave as they are: set `start`"),
        ({"recipe__class_weights": [1.0]}, "`recipe.class_weights` (=[1.0]) must be 2 positive numbers"),
        ({"recipe__class_weights": [1.0, 0.0]}, "must be 2 positive numbers, one per class"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], text: str, nuclei: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        train_alone(tiny_config(nuclei, **(OWN | changes)), tmp_path / "run")
    assert text in str(error.value)
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_the_windows_of_a_batch_take_the_bands_in_turn(nuclei: Path) -> None:
    config = tiny_config(nuclei, **OWN)
    model = create_model("seunet", widths=[5, 10], preset="geometric")
    bands = scale_bands(head_scales(model, 0.5), (0.25, 4.0))
    sources = Sources(config.data, 0, bands)
    keys = sources.training.epoch_keys(0, 2)
    batch = next(iter(ShareSampler(keys, 10, 0, ALONE, bands=5)))
    assert [band for _, _, band in batch] == [0, 1, 2, 3, 4] * 2
    assert [pair[:2] for pair in batch] == next(iter(ShareSampler(keys, 10, 0, ALONE)))
    small, large = sources.training[2, 0, 0].image, sources.training[2, 0, 4].image
    # What is enlarged varies less from pixel to pixel than what is shrunk.
    assert float(small.diff(dim=2).abs().mean()) > 1.5 * float(large.diff(dim=2).abs().mean())


def test_averaged_weights_follow_the_rule_and_are_what_is_judged() -> None:
    torch.manual_seed(6)
    model = create_model("seunet", widths=[5, 10]).train()
    trainer = Trainer(model, make_optimizer(model, 0.0), ALONE, RecipeSection(average=0.75))
    images, masks = windows(3)
    expected: dict[str, Tensor] = {}
    for step in range(4):
        trainer.gradient(Batch(images.float(), masks, torch.arange(3), torch.zeros(3)))
        set_pace(trainer.optimizer, pace=type("Pace", (), {"learning_rate": 0.01, "momentum": 0.9})())
        trainer.update()
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                before = expected[name] if step else value
                expected[name] = 0.75 * before + 0.25 * value
    found = trainer.judged.state_dict()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6)
    assert not torch.equal(found["head.convolution.weight"], model.state_dict()["head.convolution.weight"])


def test_the_best_weights_are_the_averaged_ones(nuclei: Path, tmp_path: Path) -> None:
    config = tiny_config(nuclei, **OWN, recipe__average=0.5, recipe__epochs=1)
    train_alone(config, tmp_path)
    last, best = (read_checkpoint(tmp_path / f"{name}.safetensors").tensors for name in ("last", "best"))
    name = "head.convolution.weight"
    assert torch.equal(best[f"model/{name}"], last[f"average/module.{name}"])
    assert not torch.equal(best[f"model/{name}"], last[f"model/{name}"])


def test_frozen_norms_keep_the_statistics_they_came_with_and_all_else_learns(nuclei: Path, tmp_path: Path) -> None:
    train_alone(tiny_config(nuclei, recipe__epochs=1), tmp_path / "first")
    start = str(tmp_path / "first" / "model")
    config = tiny_config(nuclei, start=start, recipe__epochs=1, recipe__frozen_norms=True)
    train_alone(config, tmp_path / "second")
    before = seunet.load(start).state_dict()
    after = read_checkpoint(tmp_path / "second" / "last.safetensors").tensors
    for name, value in before.items():
        if "running" in name or "num_batches" in name:
            assert torch.equal(after[f"model/{name}"], value), name
        elif "coefficients" in name:
            assert not torch.equal(after[f"model/{name}"], value), name


def test_a_run_can_begin_with_the_averaged_weights_another_ended_with(nuclei: Path, tmp_path: Path) -> None:
    train_alone(tiny_config(nuclei, recipe__average=0.9, recipe__epochs=1), tmp_path / "first")
    last = tmp_path / "first" / "last.safetensors"
    model = start_model(str(last))
    kept = read_checkpoint(last).tensors
    for name, value in model.state_dict().items():
        assert torch.equal(value, kept[f"average/module.{name}"]), name
    assert not torch.equal(kept["average/module.head.convolution.weight"], kept["model/head.convolution.weight"])


def test_a_first_stage_that_is_not_there_is_one_line_about_start(nuclei: Path, tmp_path: Path) -> None:
    missing = tmp_path / "first" / "last.safetensors"
    with pytest.raises(InputError) as error:
        train_alone(tiny_config(nuclei, start=str(missing)), tmp_path / "second")
    assert str(error.value) == f"`start` (={missing}): no such checkpoint; make that run first, or give its path"


def test_of_its_windows_a_head_is_shown_a_share_at_any_magnification() -> None:
    augmentation = Augmentation(scale_range=(0.25, 4.0))
    band = (1.0, 1.1)
    own, some, none = (
        [draw(augmentation, 3, 1, index, band, share).scale for index in range(400)] for share in (0.0, 0.3, 1.0)
    )
    assert all(1.0 <= scale <= 1.1 for scale in own)
    assert none == [draw(augmentation, 3, 1, index).scale for index in range(400)]
    foreign = [two != one for one, two in zip(own, some, strict=True)]
    assert 0.22 < sum(foreign) / 400 < 0.38
    assert [two for two, moved in zip(some, foreign, strict=True) if moved] == [
        three for three, moved in zip(none, foreign, strict=True) if moved
    ]


def test_far_from_its_own_magnifications_a_head_is_to_be_unsure_and_nearer_between() -> None:
    model = frozen_model()
    images, masks = windows(5)
    misfits = torch.tensor([0.0, 0.5, 1.0, 1.5, 7.0])
    loss_of = LossOf(model, RecipeSection(class_weights=(1.0, 2.0), first_head_scale=1.0, unsure_octaves=1.5))
    _, found = loss_of(images, masks, misfits, torch.tensor(5 * 13 * 16))
    probabilities = model(images[None])[0].softmax(1).detach()
    for head, doubt in enumerate([0, 1 / 3, 2 / 3, 1, 1]):
        truth = pixel_losses(probabilities[head], masks[head], (1.0, 2.0))
        unsure = -probabilities[head][:, 3:].log().mean(0).flatten()
        expected = ((1 - doubt) * truth + doubt * unsure).mean()
        assert float(found[1 + head]) == pytest.approx(float(expected), rel=1e-6)


def test_a_window_knows_how_far_it_is_from_the_band_it_was_asked_of(nuclei: Path) -> None:
    config = tiny_config(nuclei, **OWN)
    bands = [(0.5, 0.6), (2.0, 3.0)]
    sources = Sources(config.data, 3, bands, 0.5)
    augmentation = sources.training.augmentation
    misfits = []
    for index in range(len(sources.training)):
        for band, octaves in enumerate(bands):
            scale = draw(augmentation, 3, 1, index, octaves, 0.5).scale
            window = sources.training[1, index, band]
            assert window.misfit == octaves_outside(scale, octaves)
            misfits.append(window.misfit)
    assert min(misfits) == 0
    assert max(misfits) > 0.5
    assert sources.training[1, 0].misfit == 0


def test_unsureness_without_windows_to_be_unsure_of_is_refused(nuclei: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`recipe.unsure_octaves` is about windows that are not a head's own"):
        train_alone(tiny_config(nuclei, **OWN, recipe__unsure_octaves=1.0), tmp_path / "run")


def test_foreign_windows_without_own_ones_are_refused(nuclei: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`recipe.foreign_share` is of windows that are not a head's own"):
        train_alone(tiny_config(nuclei, recipe__foreign_share=0.2), tmp_path / "run")
