"""Scale-normalised Gaussian derivatives on the pixel grid, in three discretisations (paper eq. 3), and the N-jet: all
derivatives of total order ≤ N, as products of 1-D filters (eq. 4).

A filter is symmetric (even order) or antisymmetric (odd order), so only its half t = 0 … R is computed: `half_taps`
gives [scales, order + 1, R + 1], `full_taps` unfolds it.  Filters are applied by convolution, (h ⋆ f)(x) = Σ_t h(t)
f(x − t), so that the response to a ramp of slope 1 is +σ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor

from seunet.errors import InputError, check_known


def hermites(order: int, z: Tensor) -> list[Tensor]:
    """The probabilists' Hermite polynomials He₀(z) … Heₙ(z): He₀ = 1, He₁ = z, Heₙ₊₁ = z Heₙ − n Heₙ₋₁."""
    before, found = torch.zeros_like(z), [torch.ones_like(z)]
    for n in range(order):
        before, following = found[n], z * found[n] - n * before
        found.append(following)
    return found


def hermite(order: int, z: Tensor) -> Tensor:
    """Heₙ(z), the last of `hermites`."""
    return hermites(order, z)[order]


def gaussian_derivatives(order: int, x: Tensor, sigma: Tensor) -> list[Tensor]:
    r"""σⁿ ∂ⁿG(x; σ)/∂xⁿ = (−1)ⁿ Heₙ(x/σ) G(x; σ) for n = 0 … order,  G = exp(−x²/2σ²) / (σ√2π)."""
    z = x / sigma
    density = torch.exp(-z.square() / 2) / (sigma * math.sqrt(2 * math.pi))
    return [polynomial * density * (-1.0) ** n for n, polynomial in enumerate(hermites(order, z))]


def gaussian_derivative(order: int, x: Tensor, sigma: Tensor) -> Tensor:
    """σⁿ ∂ⁿG(x; σ)/∂xⁿ, the last of `gaussian_derivatives`."""
    return gaussian_derivatives(order, x, sigma)[order]


def _sampled(sigma: Tensor, reach: int, order: int) -> Tensor:
    """σⁿ ∂ⁿG at the pixel's centre: the paper's filters."""
    t = torch.arange(reach + 1, dtype=sigma.dtype, device=sigma.device)
    return torch.stack(gaussian_derivatives(order, t, sigma), dim=1)


def _integrated(sigma: Tensor, reach: int, order: int) -> Tensor:
    """The integral of σⁿ ∂ⁿG over the pixel: σ [σⁿ⁻¹ ∂ⁿ⁻¹G] from t − ½ to t + ½, for n = 0 by the error function."""
    t = torch.arange(reach + 1, dtype=sigma.dtype, device=sigma.device)
    right, left, width = t + 0.5, t - 0.5, sigma * math.sqrt(2)
    taps = [(torch.erf(right / width) - torch.erf(left / width)) / 2]
    for n in range(order):
        taps.append(sigma * (gaussian_derivative(n, right, sigma) - gaussian_derivative(n, left, sigma)))
    return torch.stack(taps, dim=1)


def _discrete(sigma: Tensor, reach: int, order: int) -> Tensor:
    """Lindeberg's discrete analogue of the Gaussian and σⁿ times its central differences.

    T(t; σ) = e^{−σ²} I_t(σ²) = (1/M) Σ_k exp(−σ²(1 − cos ω_k)) cos(ω_k t),  ω_k = 2πk/M; exact up to aliasing
    at distance M.  Second differences for each two orders, (T(t + 1) − T(t − 1))/2 for an odd one.
    """
    longer = reach + order
    period = 4 * longer + 64
    t = torch.arange(longer + 1, dtype=sigma.dtype, device=sigma.device)
    frequency = torch.arange(period, dtype=sigma.dtype, device=sigma.device) * (2 * math.pi / period)
    spectrum = torch.exp(-sigma.square() * (1 - torch.cos(frequency)))
    even = spectrum @ torch.cos(frequency[:, None] * t) / period
    taps = []
    for n in range(order + 1):
        taps.append(sigma**n * (_first_difference(even) if n % 2 else even)[:, : reach + 1])
        if n % 2:
            even = _second_difference(even)
    return torch.stack(taps, dim=1)


def _first_difference(half: Tensor) -> Tensor:
    """(f(t + 1) − f(t − 1))/2 of an even function given for t ≥ 0; one tap shorter."""
    rest = (half[:, 2:] - half[:, :-2]) / 2
    return torch.cat([torch.zeros_like(half[:, :1]), rest], dim=1)


def _second_difference(half: Tensor) -> Tensor:
    """f(t + 1) − 2 f(t) + f(t − 1) of an even function given for t ≥ 0; one tap shorter."""
    first = 2 * (half[:, 1:2] - half[:, :1])
    return torch.cat([first, half[:, 2:] - 2 * half[:, 1:-1] + half[:, :-2]], dim=1)


_DISCRETISATIONS: Final[dict[str, Callable[[Tensor, int, int], Tensor]]] = {
    "sampled": _sampled,
    "integrated": _integrated,
    "discrete": _discrete,
}
DISCRETISATIONS: Final = tuple(sorted(_DISCRETISATIONS))


def half_taps(sigma: Tensor, radii: Sequence[int], order: int, discretisation: str = "sampled") -> Tensor:
    """σⁿ ∂ⁿG at t = 0 … max(radii) for n = 0 … order: [scales, order + 1, max(radii) + 1], zero beyond each radius.

    The Gaussian is renormalised to sum 1 over its window; the sampled derivatives by the same factor (the paper's
    filters are Hermite polynomial × renormalised Gaussian).  Computed in float64 whatever the type of σ: a handful of
    numbers, and the filters are exact in float32.
    """
    raw = _raw_taps(sigma, radii, order, discretisation)
    return raw / _divisors(raw, discretisation)


def taps_and_slopes(
    sigma: Tensor, radii: Sequence[int], order: int, discretisation: str = "sampled"
) -> tuple[Tensor, Tensor]:
    """`half_taps` and ∂half_taps/∂σ, each scale by its own σ, both of one shape; no gradient.

    All three kernels obey the diffusion equation ∂G/∂σ = σ ∂²G, so with D_n = σⁿ ∂ⁿG the slope of an unnormalised tap
    is (n D_n + D_{n+2}) / σ, and the quotient rule does the rest.
    """
    with torch.no_grad():
        longer = _raw_taps(sigma, radii, order + 2, discretisation)
        n = torch.arange(order + 1, dtype=longer.dtype, device=longer.device)[:, None]
        raw = longer[:, : order + 1]
        slopes = (n * raw + longer[:, 2:]) / sigma.to(longer.dtype)[:, None, None]
        divisors = _divisors(raw, discretisation)
        divisor_slopes = _divisors(slopes, discretisation) * (divisors != 1)
        taps = raw / divisors
        return taps, (slopes - taps * divisor_slopes) / divisors


def _raw_taps(sigma: Tensor, radii: Sequence[int], order: int, discretisation: str) -> Tensor:
    """The taps of the infinite filters, cut at each radius."""
    check_known("discretisation", discretisation, DISCRETISATIONS)
    if sigma.ndim != 1 or len(radii) != len(sigma):
        raise InputError(f"`radii` (={list(radii)}) must give one radius for each of the {sigma.numel()} σ")
    exact = sigma if sigma.device.type == "mps" else sigma.double()
    taps = _DISCRETISATIONS[discretisation](exact[:, None], max(radii), order)
    # One comparison per scale: a tensor of the radii would be copied to a graphics card, which waits for that.
    t = torch.arange(max(radii) + 1, device=sigma.device)
    return taps * torch.stack([t <= radius for radius in radii])[:, None]


def _divisors(taps: Tensor, discretisation: str) -> Tensor:
    """What each order is divided by, [scales, order + 1 or 1, 1]: the sum of order 0 over its window, or 1."""
    total = 2 * taps[:, :1].sum(-1, keepdim=True) - taps[:, :1, :1]
    if discretisation == "sampled":
        return total
    return torch.cat([total, torch.ones_like(taps[:, 1:, :1])], dim=1)


def full_taps(half: Tensor) -> Tensor:
    """[…, order + 1, R + 1] → […, order + 1, 2R + 1]: h(−t) = (−1)ⁿ h(t)."""
    parity = 1 - 2 * (torch.arange(half.shape[-2], dtype=half.dtype, device=half.device) % 2)
    return torch.cat([(parity[:, None] * half[..., 1:]).flip(-1), half], dim=-1)


def jet_orders(order: int) -> list[tuple[int, int]]:
    """(i, j) with i + j ≤ order, i along x and j along y.  Everywhere in the package the basis is in this order.

    >>> jet_orders(1)
    [(0, 0), (0, 1), (1, 0)]
    """
    return [(i, j) for i in range(order + 1) for j in range(order + 1 - i)]


def jet_size(order: int) -> int:
    """How many derivatives the jet has: (N + 1)(N + 2)/2."""
    return (order + 1) * (order + 2) // 2


def order_of(size: int) -> int:
    """N of a jet of so many derivatives."""
    return (math.isqrt(8 * size + 1) - 3) // 2


def jet_basis(taps: Tensor) -> Tensor:
    """Full 1-D taps [order + 1, size] → the 2-D filters G^{i,j}(y, x) of the jet, [basis, size, size]."""
    return torch.stack([torch.outer(taps[j], taps[i]) for i, j in jet_orders(len(taps) - 1)])
