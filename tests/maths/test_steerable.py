"""SESN's basis against an independent evaluation of its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite_e
from scipy.interpolate import BarycentricInterpolator

from seunet.maths.sesn import GRID_ORDERS, TRUNCATED_ORDERS, hermite_functions, steerable_taps, support_radius
from support.scale_bases import steerable_basis

SCALES = (1, 2, 3, 4, 5)


def oracle_basis(scales: tuple[float, ...], orders: tuple[tuple[int, int], ...]) -> np.ndarray:
    """ψ on the largest 2-D grid, cut to each support, divided by its norm at the smallest scale."""
    largest = int(np.ceil(max(scales)))
    y, x = np.mgrid[-largest : largest + 1, -largest : largest + 1].astype(float)
    basis = np.zeros((len(orders), len(scales), *x.shape))
    for k, (n, m) in enumerate(orders):
        for i, s in enumerate(scales):
            polynomial = hermite_e.HermiteE.basis(n)(y / s) * hermite_e.HermiteE.basis(m)(x / s)
            inside = np.maximum(abs(x), abs(y)) <= np.ceil(s)
            basis[k, i] = polynomial * np.exp(-(x**2 + y**2) / (2 * s**2)) / s**2 * inside
    smallest = int(np.argmin(scales))
    return basis / np.sqrt((basis[:, [smallest]] ** 2).sum((2, 3), keepdims=True))


@pytest.mark.parametrize("orders", [GRID_ORDERS, TRUNCATED_ORDERS, ((0, 0), (3, 1), (6, 0))])
@pytest.mark.parametrize("scales", [SCALES, (1, 1.41, 2), (2.5, 0.8), (7,)])
def test_the_basis_is_the_formula(scales: tuple[float, ...], orders: tuple[tuple[int, int], ...]) -> None:
    basis = steerable_basis(scales, orders)
    np.testing.assert_allclose(basis.numpy(), oracle_basis(scales, orders), atol=1e-13)


def test_hand_computed_hermite_functions_at_scale_two() -> None:
    # x = −2 … 2, z = x/2; at x = 2: He₂ = 0, at x = 0: −1, both times exp(−z²/2)/2.
    functions = hermite_functions(2, 2)
    assert functions.shape == (3, 5)
    assert functions[0].tolist() == pytest.approx([0.303265, 0.441248, 0.5, 0.441248, 0.303265], abs=1e-6)
    assert functions[1].tolist() == pytest.approx([-0.303265, -0.220624, 0, 0.220624, 0.303265], abs=1e-6)
    assert functions[2].tolist() == pytest.approx([0, -0.330936, -0.5, -0.330936, 0], abs=1e-6)


def test_order_zero_alone_is_a_gaussian() -> None:
    assert hermite_functions(0, 1).shape == (1, 3)
    assert steerable_taps((1, 2), 0)[0].square().sum().item() == pytest.approx(1)


def test_supports_are_3_to_11_at_the_paper_scales_and_round_up_between() -> None:
    assert [2 * support_radius(scale) + 1 for scale in SCALES] == [3, 5, 7, 9, 11]
    assert [2 * support_radius(scale) + 1 for scale in (0.5, 1.41, 2.01)] == [3, 5, 7]
    basis = steerable_basis(SCALES)
    assert basis.shape == (9, 5, 11, 11)
    for index, scale in enumerate(SCALES):
        outside = basis[:, index].clone()
        outside[:, 5 - scale : 6 + scale, 5 - scale : 6 + scale] = 0
        assert not outside.any()


def test_every_function_is_a_unit_vector_at_the_smallest_scale_wherever_it_is_in_the_list() -> None:
    basis = steerable_basis((3, 1.5, 2))
    torch.testing.assert_close(basis[:, 1].square().sum((1, 2)), torch.ones(9, dtype=torch.float64))


def test_the_grid_spans_every_3x3_filter_and_the_truncated_set_only_six_dimensions() -> None:
    def rank(orders: tuple[tuple[int, int], ...]) -> int:
        return int(torch.linalg.matrix_rank(steerable_basis((1,), orders).reshape(9, 9)))

    assert len(GRID_ORDERS) == len(TRUNCATED_ORDERS) == 9
    assert max(n + m for n, m in GRID_ORDERS) == max(n + m for n, m in TRUNCATED_ORDERS) == 4
    assert rank(GRID_ORDERS) == 9
    assert rank(TRUNCATED_ORDERS) == 6


@pytest.mark.parametrize("scale", [2, 3, 4, 5])
def test_on_shared_points_a_filter_is_the_scale_one_filter_resized_exactly(scale: int) -> None:
    # ψ(s·p; s) = s⁻² ψ(p; 1): every s-th tap of the large filter is a tap of the small one.
    basis = steerable_basis((1, scale))
    small, large = basis[:, 0], basis[:, 1]
    shared = slice(scale - 1, scale + 2)
    torch.testing.assert_close(large[:, ::scale, ::scale] * scale**2, small[:, shared, shared])


@pytest.mark.parametrize(("base", "bound"), [(1, 0.43), (2, 0.034), (3, 0.0024), (4, 0.00013)])
@pytest.mark.parametrize("factor", [1.5, 2, 3])
def test_a_filter_is_the_smaller_one_resampled_with_an_error_that_falls_as_the_sampling_refines(
    base: int, bound: float, factor: float
) -> None:
    # The polynomial through the taps at scale `base`, read at the taps of scale base·factor: the difference
    # is the discretisation.  Three taps at scale 1 tell little of a mixed derivative between them (43 % of
    # the largest tap; 4 % for the Gaussian); five at scale 2 are within 3.4 %, nine within 0.013 %.
    basis = steerable_basis((base, base * factor)).numpy()
    centre, reach = basis.shape[-1] // 2, int(base * factor)
    nodes = np.arange(-base, base + 1)
    targets = np.arange(-reach, reach + 1)
    small = basis[:, 0, centre - base : centre + base + 1, centre - base : centre + base + 1]
    large = basis[:, 1, centre - reach : centre + reach + 1, centre - reach : centre + reach + 1]
    rows = BarycentricInterpolator(nodes, small, axis=1)(targets / factor)
    resampled = BarycentricInterpolator(nodes, rows, axis=2)(targets / factor) / factor**2
    error = abs(resampled - large).max((1, 2)) / abs(large).max((1, 2))
    assert error.max() < bound
