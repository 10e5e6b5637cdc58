"""Scale equivariance as a fact: random weights, smooth images, the best pair of scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

import seunet
from seunet.errors import InputError
from seunet.evaluation.equivariance import assert_equivariant, error_matrix, interior, squared_ratio
from seunet.layers import GaussianConv2d
from seunet.maths import SigmaRange, block_starts, equal_range, geometric_range, rescale
from seunet.models import SEUNet
from support.images import band_limited


class Stack(nn.Module):
    """Gaussian layers with ReLU between them: no norm, no pooling."""

    def __init__(self, ranges: Sequence[SigmaRange], truncation: float, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.ModuleList(
            GaussianConv2d(3 if n == 0 else 40, 40, sigma_range=each, lifting=n == 0, truncation=truncation)
            for n, each in enumerate(ranges)
        )

    def forward(self, features: Tensor) -> Tensor:
        for layer in self.layers:
            features = layer(features).relu()
        return features


def geometric_stack(seed: int) -> Stack:
    """Eight layers as in the preset `geometric`."""
    return Stack([geometric_range(0.7, math.sqrt(2), 5)] * 8, truncation=2.5, seed=seed)


def paper_stack(seed: int) -> Stack:
    """The first eight layers of the paper's schedule."""
    return Stack([equal_range(block_starts(4)[n // 2], block_starts(4)[n // 2] + 2.5, 5) for n in range(8)], 2.0, seed)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_eight_geometric_layers_are_equivariant_to_one_percent(scale: float, seed: int) -> None:
    error = assert_equivariant(geometric_stack(seed), band_limited(1, 128, seed), scale, tolerance=0.01)
    assert error < 0.001  # what is measured; the promise is 0.01


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_eight_layers_of_the_papers_intervals_are_ten_times_worse(scale: float) -> None:
    images = band_limited(1, 128)
    with torch.no_grad():
        paper = float(error_matrix(paper_stack(0), paper_stack(0), images, scale, 0.2).min())
        geometric = float(error_matrix(geometric_stack(0), geometric_stack(0), images, scale, 0.2).min())
    assert 0.005 < paper < 0.1
    assert geometric < paper / 10


def test_without_scale_normalisation_it_would_fail() -> None:
    """The assertion can fail: an ordinary convolution seen at one scale is far from equivariant."""
    torch.manual_seed(0)
    convolutions = nn.Sequential(
        *(nn.Sequential(nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.ReLU()) for _ in range(4))
    )
    with pytest.raises(AssertionError, match=r"not equivariant at s = 2: the best pair of scales differs by"):
        assert_equivariant(lambda x: convolutions(x)[:, None], band_limited(1, 64, cutoff=0.3), 2.0, tolerance=0.01)


def test_the_best_pair_of_scales_has_the_ratio_of_the_images() -> None:
    network = geometric_stack(0)
    with torch.no_grad():
        for scale, steps in ((2.0, 2), (0.5, -2), (math.sqrt(2), 1)):
            matrix = error_matrix(network, network, band_limited(1, 128), scale, 0.2)
            original, rescaled = divmod(int(matrix.argmin()), 5)
            assert rescaled - original == steps  # neighbours are √2 apart


def at_scale_error(pooling: str, seed: int) -> float:
    """‖S₂Φ(f) − Φ_{σ×2}(S₂f)‖² / ‖S₂Φ(f)‖² of the whole U with random weights, same heads, interior."""
    torch.manual_seed(seed)
    model = seunet.create_model("seunet", preset="geometric", pooling=pooling, widths=(20, 40)).eval()
    assert isinstance(model, SEUNet)
    images = band_limited(1, 128, seed)
    with torch.no_grad():
        target = rescale(model(images).flatten(1, 2), 2.0)
        actual = model.at_scale(2.0)(rescale(images, 2.0)).flatten(1, 2)
    return float(squared_ratio(interior(target, 0.2), interior(actual, 0.2)))


def test_at_scale_two_on_the_doubled_image_is_the_doubled_output_and_pooling_has_its_price() -> None:
    without = [at_scale_error("none", seed) for seed in range(3)]
    pooled = [at_scale_error("max", seed) for seed in range(3)]
    averaged = [at_scale_error("average", seed) for seed in range(3)]
    assert max(without) < 0.001  # the equivariance error of the geometric preset without pooling
    assert 0.001 < sum(pooled) / 3 < 0.2  # a pool of two pixels is fixed in pixels
    assert sum(averaged) < sum(pooled)


def test_the_squared_ratio_is_that_of_the_paper() -> None:
    expected, actual = torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 5.0]])
    assert float(squared_ratio(expected, actual)) == pytest.approx(1 / 25)


def test_a_margin_of_half_the_image_is_refused() -> None:
    with pytest.raises(InputError, match=r"`margin` \(=0\.5\) must be from 0 to below 0\.5"):
        interior(torch.zeros(1, 1, 4, 4), 0.5)
