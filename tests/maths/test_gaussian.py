"""The Gaussian derivatives against scipy, autograd and pyscsp."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import HermiteE
from pyscsp.discscsp import make1Ddiscgaussfilter, make1Dintgaussfilter
from pyscsp.gaussders import make1Dintgaussderfilter, make1Dsamplgaussderfilter
from scipy.special import ive
from scipy.stats import norm

from seunet.errors import InputError
from seunet.maths.gaussian import (
    DISCRETISATIONS,
    full_taps,
    gaussian_derivative,
    half_taps,
    hermite,
    taps_and_slopes,
)

SIGMAS = [0.3, 0.7, 1.0, 2.25, 4.5]
WIDE = 60  # a window so wide that renormalising it changes nothing


def taps_of(sigma: float, order: int, kind: str, radius: int = WIDE) -> np.ndarray:
    value = torch.tensor([sigma], dtype=torch.float64)
    return full_taps(half_taps(value, [radius], order, kind))[0].numpy()


@pytest.mark.parametrize("order", range(7))
def test_hermite_polynomials_equal_numpys(order: int) -> None:
    z = torch.linspace(-4, 4, 41, dtype=torch.float64)
    np.testing.assert_allclose(hermite(order, z), HermiteE.basis(order)(z.numpy()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_derivatives_equal_repeated_autograd(sigma: float) -> None:
    x = torch.linspace(-6, 6, 25, dtype=torch.float64, requires_grad=True)
    value = torch.exp(-x.square() / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    for order in range(5):
        ours = gaussian_derivative(order, x.detach(), torch.tensor(sigma, dtype=torch.float64))
        torch.testing.assert_close(ours, sigma**order * value.detach(), rtol=1e-6, atol=1e-9)
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)


@pytest.mark.parametrize("sigma", [1.0, 2.25, 4.5])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sampled_derivatives_equal_pyscsp(sigma: float, order: int) -> None:
    oracle = sigma**order * make1Dsamplgaussderfilter(order, sigma, WIDE)
    # pyscsp samples the density; ours is divided by the sum of the sampled Gaussian, 1 to ten digits at these σ.
    np.testing.assert_allclose(taps_of(sigma, order, "sampled")[order], oracle, atol=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_sampled_gaussian_is_scipys_density_renormalised_to_sum_one(sigma: float) -> None:
    radius = math.ceil(2 * sigma)
    density = norm.pdf(np.arange(-radius, radius + 1), scale=sigma)
    np.testing.assert_allclose(taps_of(sigma, 0, "sampled", radius)[0], density / density.sum(), rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.25, 4.5])
def test_integrated_derivatives_equal_pyscsp(sigma: float) -> None:
    oracle = make1Dintgaussfilter(sigma, 1e-12)
    np.testing.assert_allclose(taps_of(sigma, 0, "integrated", len(oracle) // 2)[0], oracle, atol=1e-6)
    for order in (1, 2, 3, 4):
        oracle = sigma**order * make1Dintgaussderfilter(order, sigma, WIDE)
        np.testing.assert_allclose(taps_of(sigma, order, "integrated")[order], oracle, atol=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_discrete_gaussian_equals_pyscsp_and_the_bessel_functions(sigma: float) -> None:
    oracle = make1Ddiscgaussfilter(sigma, 1e-12)
    np.testing.assert_allclose(taps_of(sigma, 0, "discrete", len(oracle) // 2)[0], oracle, atol=1e-6)
    t = np.abs(np.arange(-WIDE, WIDE + 1))
    np.testing.assert_allclose(taps_of(sigma, 0, "discrete")[0], ive(t, sigma**2), atol=1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_discrete_derivatives_are_central_differences_of_the_bessel_functions(sigma: float) -> None:
    kernel = ive(np.abs(np.arange(-WIDE - 5, WIDE + 6)), sigma**2)
    first, second = np.array([0.5, 0, -0.5]), np.array([1, -2, 1])
    for order in range(1, 5):
        expected = kernel
        for _ in range(order // 2):
            expected = np.convolve(expected, second, mode="same")
        if order % 2:
            expected = np.convolve(expected, first, mode="same")
        got = taps_of(sigma, order, "discrete")[order]
        np.testing.assert_allclose(got, sigma**order * expected[5:-5], atol=1e-10)


@pytest.mark.parametrize("kind", DISCRETISATIONS)
@pytest.mark.parametrize("sigma", [0.1, 0.25, 1.0, 4.5])
def test_the_gaussian_sums_to_one_and_derivatives_have_the_parity_of_their_order(kind: str, sigma: float) -> None:
    taps = taps_of(sigma, 4, kind, max(1, math.ceil(2 * sigma)))
    assert taps[0].sum() == pytest.approx(1, abs=1e-12)
    for order, row in enumerate(taps):
        np.testing.assert_allclose(row[::-1], (-1) ** order * row, atol=1e-15)


@pytest.mark.parametrize(("kind", "gain"), [("sampled", 0.011), ("integrated", 0.432), ("discrete", 0.940)])
def test_at_sigma_a_quarter_the_sampled_derivative_is_nearly_blind_to_a_ramp_and_the_discrete_one_is_not(
    kind: str, gain: float
) -> None:
    taps = taps_of(0.25, 1, kind, 1)[1]
    response = -(taps * np.arange(-1, 2)).sum() / 0.25  # (h ⋆ x)(0) = Σ h(t)(0 − t), divided by σ
    assert response == pytest.approx(gain, abs=0.005)


@pytest.mark.parametrize("kind", DISCRETISATIONS)
@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_slopes_equal_the_derivative_of_the_taps_by_autograd(kind: str, order: int) -> None:
    sigma = torch.tensor([0.25, 0.6, 1.3, 4.2], dtype=torch.float64)
    radii = [1, 2, 3, 9]
    _, expected = torch.func.jvp(lambda s: half_taps(s, radii, order, kind), (sigma,), (torch.ones_like(sigma),))
    taps, slopes = taps_and_slopes(sigma, radii, order, kind)
    torch.testing.assert_close(taps, half_taps(sigma, radii, order, kind), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slopes, expected, rtol=1e-8, atol=1e-10)


def test_taps_beyond_a_scales_radius_are_zero() -> None:
    taps = half_taps(torch.tensor([0.5, 2.0]), [1, 4], 1)
    assert taps.shape == (2, 2, 5)
    assert taps[0, :, 2:].abs().max() == 0
    assert taps[1].abs().min(dim=1).values[0] > 0


def test_an_unknown_discretisation_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown discretisation 'sample'; did you mean 'sampled'"):
        half_taps(torch.ones(1), [2], 1, "sample")


def test_radii_must_fit_the_sigmas() -> None:
    with pytest.raises(InputError, match=r"`radii` \(=\[1, 2\]\) must give one radius for each of the 3 σ"):
        half_taps(torch.ones(3), [1, 2], 1)
