"""SESN's layer: both ways of running it, and its equivariance."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.layers import sesn_conv as steerable
from seunet.layers.sesn_conv import SteerableConv2d
from seunet.maths import TRUNCATED_ORDERS, Orders


@pytest.mark.parametrize("orders", [steerable.GRID_ORDERS, TRUNCATED_ORDERS, ((0, 3), (2, 0))])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
def test_dense_and_separable_filters_agree(
    orders: Orders, dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = SteerableConv2d(3, 2, orders=orders, dtype=dtype)
    maps = torch.randn(2, 5, 3, 14, 9, dtype=dtype)
    monkeypatch.setattr(steerable, "WIDEST_DENSE_FILTER", 99)
    dense = layer(maps)
    monkeypatch.setattr(steerable, "WIDEST_DENSE_FILTER", 0)
    torch.testing.assert_close(layer(maps), dense, atol=tolerance, rtol=0)


def test_a_gaussian_weight_smooths_a_constant_by_its_hand_computed_gain() -> None:
    # ψ₀₀ at scale 1 is the outer product of (e, 1, e)/√(1 + 2e²) with e = exp(−½).
    layer = SteerableConv2d(1, 1, scales=[1], lifting=True, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[0, 0, 0] = 1
    e = math.exp(-0.5)
    out = layer(torch.ones(1, 1, 5, 5, dtype=torch.float64))
    assert out[0, 0, 0, 2, 2].item() == pytest.approx((1 + 2 * e) ** 2 / (1 + 2 * e**2))


def blobs(size_px: int, width_px: float) -> Tensor:
    """The same scene at any size: a wave under a Gaussian window, sampled from its formula."""
    x = torch.arange(size_px, dtype=torch.float64) - size_px // 2
    y = x[:, None]
    wave = torch.cos(1.3 * x / width_px + 0.4) * torch.cos(0.8 * y / width_px - 0.2)
    return (wave * torch.exp(-(x**2 + y**2) / (8 * width_px**2)))[None, None]


@pytest.mark.parametrize(("scale", "bound"), [(1, 0.16), (2, 0.092), (4, 0.065), (8, 0.041)])
def test_a_scene_twice_as_large_moves_to_twice_the_scale_to_the_sampling_error(scale: int, bound: float) -> None:
    # The response at scale 2s to the scene enlarged by 2, read at every second pixel, is the response at s to
    # the scene.  A support of ±s cuts the functions where they are large, so their sum over few taps is not
    # their integral: 16 % at the finest pair, falling as the taps grow.
    torch.manual_seed(0)
    layer = SteerableConv2d(1, 8, scales=[scale, 2 * scale], lifting=True, dtype=torch.float64)
    with torch.no_grad():
        response = layer(blobs(65, 6.0))[:, 0]
        enlarged = layer(blobs(129, 12.0))[:, 1, :, ::2, ::2]
    assert float((response - enlarged).norm() / response.norm()) < bound


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ((), "`orders` (=()) must hold at least one pair"),
        (((0, -1),), "`orders` (=((0, -1),)) must hold pairs of whole numbers from 0 to 8"),
        (((9, 0),), "`orders` (=((9, 0),)) must hold pairs of whole numbers from 0 to 8"),
        ((1, 0), "`orders` (=(1, 0)) must hold pairs of whole numbers from 0 to 8"),
        (((1, 0, 0),), "`orders` (=((1, 0, 0),)) must hold pairs of whole numbers from 0 to 8"),
        (((1.5, 0),), "`orders` (=((1.5, 0),)) must hold pairs of whole numbers from 0 to 8"),
    ],
)
def test_orders_that_are_no_pairs_are_refused(orders: Orders, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        SteerableConv2d(3, 4, orders=orders)
    assert str(refusal.value) == message
