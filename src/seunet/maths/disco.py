r"""The discrete scale basis of DISCO (Sosnovik, Moskalev, Smeulders: *DISCO*, BMVC 2021).

A scale convolution with filters κ_s is equivariant when shrinking the image by r and filtering at scale s
equals filtering at scale r·s and then shrinking,

    κ_s ⋆ L_r[f]  =  L_r[κ_{rs} ⋆ f]        for every image f.                                            (1)

*Integer scales.*  If L_r is subsampling by an integer, (1) holds exactly for the 3×3 deltas spread to the
spacing s.  That is a dilated convolution.

*Other scales.*  n < s < m = n + 1, with the integer filters given.  κ_s minimises the commutation error

    E(κ_s) = ⟨‖κ_n ⋆ L_{s/n}[f] − L_{s/n}[κ_s ⋆ f]‖²⟩ + ⟨‖κ_s ⋆ L_{m/s}[f] − L_{m/s}[κ_m ⋆ f]‖²⟩          (2)

with L_r the bicubic resampling of the published code.  The authors train on the norms of these differences
with random images.  The squares in (2) are *quadratic* in κ_s, and their mean depends on the images only
through their covariance.  So there is one minimum, the solution of a linear system, and nothing is drawn at
random: the same numbers on every run, in milliseconds.

The images are first-order Markov fields, ⟨f(p) f(q)⟩ = ρ^|p−q| along each axis.  Covariance, resampling and
deltas are products of 1-D factors, so the k²×k² system is G₁⊗G₁ + G₂⊗G₂ with k×k Gram matrices.  One
generalised eigen-decomposition makes both diagonal and the system is solved in O(k³).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

TAPS = (-1, 0, 1)
"""The positions of the deltas along one axis at scale 1."""

CORRELATION = 0.9
"""ρ of neighbouring pixels; images are smooth.  ρ = 0, white noise, would trade the gain at low frequencies,
where images have their energy, for the highest ones, which no short filter can move by part of a pixel."""

_REACH = 1
"""Pixels past ⌈s⌉ that κ_s may use: the least with which it can be better than bicubic interpolation."""

_PHASES = 60
"""Output pixels averaged over: the resampling's phase against the grid differs from pixel to pixel."""


class _Term(NamedTuple):
    """One term of (2) along one axis, as a least-squares problem in the taps of κ_s."""

    gram: Tensor  # [taps, taps]: ⟨what tap i does, what tap j does⟩
    cross: Tensor  # [taps, 3]: ⟨what tap i does, what delta a is to do⟩
    energy: Tensor  # [3]: ⟨what delta a is to do, itself⟩


def dilated_deltas(scale: int) -> Tensor:
    """[9, 2·scale + 1, 2·scale + 1]: function 3a + b is 1 at row a·scale, column b·scale and 0 elsewhere."""
    size = 2 * scale + 1
    basis = torch.zeros(3, 3, size, size, dtype=torch.float64)
    row, column = torch.arange(3)[:, None], torch.arange(3)
    basis[row, column, row * scale, column * scale] = 1.0
    return basis.flatten(0, 1)


def discrete_basis(scale: float) -> Tensor:
    """[9, size, size] in float64: the deltas at spacing `scale`.

    At an integer they are the dilated deltas, size = 2·scale + 1; between integers the minimum of (2),
    size = 2⌈scale⌉ + 3.  Computed once for each scale and kept; the caller gets a copy.
    """
    return _discrete_basis(float(scale)).clone()


@functools.cache
def _discrete_basis(scale: float) -> Tensor:
    if scale.is_integer():
        return dilated_deltas(int(scale))
    return _least_squares(_terms(scale, math.ceil(scale) + _REACH, CORRELATION))


def _least_squares(terms: list[_Term]) -> Tensor:
    """[9, size, size]: K solving Σ_t G_t K G_tᵀ = Σ_t b_t[:, a] b_t[:, b]ᵀ for every pair of deltas (a, b).

    V with VᵀΣG_tV = 1 and VᵀG_tV = Λ_t diagonal turns it into a division by Σ_t λ_t λ_tᵀ.
    """
    whitening = torch.linalg.inv(torch.linalg.cholesky(sum((term.gram for term in terms), torch.tensor(0.0))))
    _, rotation = torch.linalg.eigh(whitening @ terms[0].gram @ whitening.T)
    change = whitening.T @ rotation
    spectra = [torch.diagonal(change.T @ term.gram @ change) for term in terms]
    wanted = [change.T @ term.cross for term in terms]
    denominator = sum((torch.outer(values, values) for values in spectra), torch.tensor(0.0))
    numerator = sum((torch.einsum("ia,jb->abij", b, b) for b in wanted), torch.tensor(0.0))
    return torch.einsum("ki,abij,lj->abkl", change, numerator / denominator, change).flatten(0, 1)


def _terms(scale: float, radius: int, correlation: float) -> list[_Term]:
    """The terms of (2) along one axis; below scale 1 only the second, as there is no integer scale 0.

    L_r reads the image at p(j) = (j + ½)r − ½.  A filter before L_r moves whole pixels of the image, a filter
    after it moves whole pixels of the shrunk image, which are r pixels of the image.
    """
    below, above = math.floor(scale), math.ceil(scale)
    taps = torch.arange(-radius, radius + 1, dtype=torch.float64)
    deltas = torch.tensor(TAPS, dtype=torch.float64)
    terms = []
    if below >= 1:
        terms.append(_term(scale / below, taps, torch.zeros_like(taps), 0 * deltas, deltas * scale, correlation))
    ratio = above / scale
    terms.append(_term(ratio, torch.zeros_like(taps), taps * ratio, deltas * above, 0 * deltas, correlation))
    return terms


def _term(
    ratio: float,
    tap_before: Tensor,
    tap_after: Tensor,
    delta_before: Tensor,
    delta_after: Tensor,
    correlation: float,
) -> _Term:
    """Gram matrices of bicubic readings at p + `after`, moved by whole pixels `before`; the mean over p."""
    positions = (torch.arange(_PHASES, dtype=torch.float64) + 0.5) * ratio - 0.5
    positions = torch.cat([positions, -positions])  # left and right alike
    phases = positions - positions.floor()
    before = torch.cat([tap_before, delta_before])
    after = torch.cat([tap_after, delta_after])
    reach = math.ceil(float((before + after).abs().max())) + 3
    pixels = torch.arange(-reach, reach + 1, dtype=torch.float64)
    reading = phases[:, None] + after
    distance = pixels - before[:, None] - reading[..., None]
    rows = _cubic(distance)
    covariance = correlation ** (pixels - pixels[:, None]).abs()
    gram = torch.einsum("pik,kl,pjl->ij", rows, covariance, rows) / len(phases)
    count = len(tap_before)
    return _Term(gram[:count, :count], gram[:count, count:], torch.diagonal(gram[count:, count:]))


def _cubic(distance: Tensor, sharpness: float = -0.75) -> Tensor:
    """Keys' cubic convolution kernel; −0.75 is the choice of `torch.nn.functional.interpolate`."""
    a, d = sharpness, distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))
