"""The receptive field against what the network does when a pixel changes."""

import numpy as np
import pytest
import torch

import seunet
from seunet.models import ScaleUNet, SEUNet
from seunet.segmentation.tiled.receptive_field import (
    Span,
    filter_radii,
    layer_radius,
    made_by_upsampling,
    receptive_radius,
    seen_by_network,
    seen_by_pooling,
    seen_by_upsampling,
)
from tests.support.networks import calm_model


def influenced(model: ScaleUNet, length: int, place: int) -> np.ndarray:
    """Which image columns the prediction of column `place` depends on, by gradient.

    Average pooling hides nothing, and with outputs of 1 and a little no ReLU is closed.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.constant_(module.weight, 1e-3)
            torch.nn.init.constant_(module.bias, 1.0)
    images = torch.rand(1, 3, 8, length, dtype=torch.float64, requires_grad=True)
    with seunet.kernel_backend("torch"):  # the fast one would be compiled anew for double precision
        model.double()(images)[..., place].square().sum().backward()
    assert images.grad is not None
    return np.flatnonzero(images.grad.abs().sum((0, 1, 2)).numpy())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("seunet", {"widths": (5, 5, 5), "pooling": "average"}),
        ("seunet", {"widths": (5, 5), "pooling": "average", "scales": 1, "sigma": "free_from_one"}),
        ("unet", {"widths": (4, 4, 4), "pooling": "average"}),
        ("disco", {"widths": (5, 5), "pooling": "average"}),
        ("sesn", {"widths": (5, 5), "pooling": "average"}),
        ("seunet", {"widths": (5, 5, 5), "pooling": "none"}),
    ],
)
def test_a_prediction_depends_on_what_is_seen_and_on_nothing_else(name: str, options: dict) -> None:
    model = calm_model(name, **options)
    radii, length = filter_radii(model), 203
    for place in (0, 64, 101, 102, 202):
        seen = seen_by_network(radii, Span(place, place + 1), length)
        found = influenced(model, length, place)
        assert seen.start <= found[0]
        assert found[-1] < seen.stop
        if name in ("seunet", "unet"):  # the others take the maximum over scales, and seldom that of the widest
            assert found[0] - seen.start <= 2
            assert seen.stop - 1 - found[-1] <= 2
        assert place - receptive_radius(radii) <= seen.start
        assert seen.stop <= place + receptive_radius(radii) + 1


def test_the_paper_s_network_reaches_as_far_as_its_filters_add_up_to() -> None:
    model = seunet.create_model("seunet")
    assert isinstance(model, SEUNet)
    strides = [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1]
    for head in range(5):
        part = model.only_scale(head)
        summed = sum(
            layer_radius(layer) * stride for layer, stride in zip(part.gaussian_layers(), strides, strict=True)
        )
        # Each upsampling reads one neighbour, each pooling a pair: 2·(1 + 2 + 4 + 8) at most on top.
        assert summed <= receptive_radius(filter_radii(part)) <= summed + 30
    assert receptive_radius(filter_radii(seunet.create_model("unet"))) <= 92 + 30


def test_scaled_filters_reach_further() -> None:
    model = seunet.create_model("seunet")
    assert isinstance(model, SEUNet)
    reach = [receptive_radius(filter_radii(model.at_scale(factor))) for factor in (0.5, 1.0, 2.0)]
    assert reach[0] < reach[1] < reach[2]


def test_spans_through_pooling_and_upsampling() -> None:
    assert seen_by_pooling(Span(2, 4), 10) == Span(4, 8)
    assert seen_by_pooling(Span(2, 5), 11) == Span(4, 11)
    assert seen_by_pooling(Span(0, 1), 1) == Span(0, 1)
    assert seen_by_upsampling(Span(4, 6), 10) == Span(1, 4)
    assert seen_by_upsampling(Span(0, 3), 10) == Span(0, 2)
    assert made_by_upsampling(Span(1, 4), 10, 20) == Span(2, 8)
    assert made_by_upsampling(Span(8, 10), 10, 21) == Span(16, 21)
    with pytest.raises(IndexError, match="does not lie within"):
        Span(0, 3).within(Span(1, 5))
