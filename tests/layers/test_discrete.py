"""DISCO's layer: dilated convolutions, and exact commutation with subsampling."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seunet.errors import InputError
from seunet.layers.disco_conv import DiscreteScaleConv2d
from seunet.maths import discrete_basis

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@DTYPES
@pytest.mark.parametrize("size", [(24, 24), (7, 5), (1, 3)])
def test_at_integer_scales_the_layer_is_five_dilated_convolutions(dtype: torch.dtype, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    layer = DiscreteScaleConv2d(3, 4, dtype=dtype)
    maps = torch.randn(2, 5, 3, *size, dtype=dtype)
    filters = layer.weight.reshape(4, 3, 3, 3)
    out = layer(maps)
    for index, d in enumerate((1, 2, 3, 4, 5)):
        dilated = F.conv2d(maps[:, index], filters, layer.bias, padding=d, dilation=d)
        torch.testing.assert_close(out[:, index], dilated, atol=1e-6, rtol=0)


def test_hand_computed_taps_at_scale_three() -> None:
    layer = DiscreteScaleConv2d(1, 1, scales=[3], lifting=True, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(1.0, 10.0).view(1, 1, 9))
    impulse = torch.zeros(1, 1, 7, 7)
    impulse[..., 3, 3] = 1
    expected = torch.zeros(7, 7)
    expected[::3, ::3] = torch.arange(9.0, 0.0, -1.0).view(3, 3)
    assert torch.equal(layer(impulse)[0, 0, 0], expected)


def whole_numbers(*shape: int, dtype: torch.dtype) -> Tensor:
    """Small integers: sums of their products are exact in any order, so equality can be asked bit by bit."""
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@DTYPES
@pytest.mark.parametrize("size", [(24, 36), (25, 31), (3, 11)])
@pytest.mark.parametrize(("scale", "factor"), [(1, 2), (1, 3), (2, 2), (1, 4), (1, 5), (2, 3)])
def test_subsampling_then_filtering_is_exactly_filtering_then_subsampling(
    dtype: torch.dtype, size: tuple[int, int], scale: int, factor: int
) -> None:
    # κ_s ⋆ (f ↓ r) = (κ_{rs} ⋆ f) ↓ r to the last bit, borders too: pixel n·r is in f when n is in f ↓ r.
    layer = DiscreteScaleConv2d(2, 3, scales=[scale, scale * factor], lifting=True, dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(whole_numbers(3, 2, 9, dtype=dtype))
    image = whole_numbers(2, 2, *size, dtype=dtype)
    filtered_small = layer(image[..., ::factor, ::factor])[:, 0]
    subsampled_large = layer(image)[:, 1, :, ::factor, ::factor]
    assert torch.equal(filtered_small, subsampled_large)


def test_a_stack_of_layers_and_pointwise_steps_commutes_with_subsampling_exactly_too() -> None:
    lift = DiscreteScaleConv2d(1, 2, scales=[1, 2], lifting=True)
    hidden = DiscreteScaleConv2d(2, 2, scales=[1, 2])
    with torch.no_grad():
        lift.weight.copy_(whole_numbers(2, 1, 9, dtype=torch.float32))
        hidden.weight.copy_(whole_numbers(2, 2, 9, dtype=torch.float32))
    image = whole_numbers(1, 1, 21, 18, dtype=torch.float32)

    def network(image: Tensor) -> Tensor:
        out = hidden(lift(image).relu())
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(network(image[..., ::2, ::2])[:, 0], network(image)[:, 1, :, ::2, ::2])


def test_between_integers_the_filters_are_the_basis_mixed_by_the_weights() -> None:
    layer = DiscreteScaleConv2d(1, 1, scales=[1, 1.41], lifting=True, bias=False, dtype=torch.float64)
    impulse = F.pad(torch.ones(1, 1, 1, 1, dtype=torch.float64), [3] * 4)
    filters = torch.einsum("k,kij->ij", layer.weight[0, 0], discrete_basis(1.41))
    torch.testing.assert_close(layer(impulse)[0, 1, 0].flip(0, 1), filters)


def test_a_fraction_in_a_large_scale_is_refused_and_a_whole_number_is_not() -> None:
    with pytest.raises(InputError) as refusal:
        DiscreteScaleConv2d(1, 1, scales=(1, 64.5))
    assert str(refusal.value) == "`scales` (=[1, 64.5]) must be whole numbers above 64"
    assert DiscreteScaleConv2d(1, 1, scales=(65,), lifting=True)(torch.ones(1, 1, 4, 4)).shape == (
        1,
        1,
        1,
        4,
        4,
    )
