"""Where σ lives: ranges, their schedules over the layers, and the three ways to train it (paper section 3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.limits import MAX_FILTER_RADIUS

SIGMA_FLOOR: Final = 0.1
"""The lowest σ ever used: at 0 the sampled Gaussian divides by zero (the paper's first interval starts there)."""

_INSIDE: Final = 1e-5
"""How far, relative to its length, σ stays from the ends of its interval where tanh saturates in floating point."""

_FREE_RANGE: Final = (math.log2(SIGMA_FLOOR), math.log2(MAX_FILTER_RADIUS / 4))


@dataclass(frozen=True)
class SigmaRange:
    """The disjoint intervals (b_k, a_k) of one layer's σ, one per scale, in rising order.

    `tied` intervals have one ratio a_k / b_k and move together: a single trained number keeps every ratio σ_k / σ_j.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    tied: bool = False

    def __post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            raise InputError(f"σ bounds {list(self.lower)} and {list(self.upper)} must be two equally long lists")
        before = 0.0
        for k, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high)) or low < 0:
                raise InputError(f"σ interval {k} ({low:g}, {high:g}) must be finite and not negative")
            if high <= low:
                raise InputError(f"σ interval {k} ({low:g}, {high:g}) is empty; its upper bound must be the larger one")
            if low < before - 1e-9 * max(1.0, before):
                raise InputError(
                    f"σ interval {k} ({low:g}, {high:g}) overlaps the one before it, which ends at {before:g}; "
                    "make the intervals disjoint and rising"
                )
            before = high

    @property
    def scales(self) -> int:
        return len(self.lower)

    @property
    def midpoints(self) -> tuple[float, ...]:
        return tuple((low + high) / 2 for low, high in zip(self.lower, self.upper, strict=True))

    def scaled(self, factor: float) -> SigmaRange:
        """The same intervals for structures `factor` times as large."""
        if not math.isfinite(factor) or factor <= 0:
            raise InputError(f"`factor` (={factor}) must be a positive number: by how much structures are larger")
        lower, upper = (tuple(bound * factor for bound in bounds) for bounds in (self.lower, self.upper))
        return SigmaRange(lower, upper, self.tied)


def constrain(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """σ(x) = (a − b)/2 · tanh x + (a + b)/2  (paper eq. 6), kept strictly inside (b, a) where tanh rounds to ±1."""
    sigma = (upper - lower) / 2 * (torch.tanh(x) * (1 - _INSIDE)) + (upper + lower) / 2
    # Straight through the floor: the gradient still says where σ wants to go, so it can come back.
    return sigma + (sigma.clamp(min=SIGMA_FLOOR) - sigma).detach()


def free_sigma(x: Tensor) -> Tensor:
    """σ = 2ˣ (N-Jet): any positive σ, held to where a filter exists so that it neither reaches 0 nor overflows."""
    return torch.exp2(torch.clamp(x, *_FREE_RANGE))


def filter_radius(sigma: float, truncation: float = 2.0) -> int:
    """R = ⌈truncation · σ⌉ ≥ 1; the paper cuts at two standard deviations, filters of τ = 2R + 1 (eq. 7)."""
    # A hair of tolerance: σ = 3 · 0.1 · 5 must not round up to the next pixel because of its last binary digit.
    radius = max(1, math.ceil(truncation * sigma - 1e-6))
    if radius > MAX_FILTER_RADIUS:
        raise InputError(
            f"σ = {sigma:g} needs a filter of radius {radius} px; the largest is {MAX_FILTER_RADIUS}: "
            "shrink the image or the scale"
        )
    return radius


def equal_range(lowest: float, highest: float, scales: int) -> SigmaRange:
    """(lowest, highest) cut into `scales` intervals of equal length."""
    edges = [lowest + (highest - lowest) * k / scales for k in range(scales + 1)]
    return SigmaRange(tuple(edges[:-1]), tuple(edges[1:]))


def geometric_range(base: float, ratio: float, scales: int) -> SigmaRange:
    """Tied intervals around base · ratioᵏ: from √ratio below to √ratio above, so that they meet."""
    if not ratio > 1:
        raise InputError(f"`ratio` (={ratio:g}) must be larger than 1")
    # Midpoint base·ratioᵏ exactly: low + high = 2·base·ratioᵏ and high / low = ratio.
    lower = tuple(2 * base * ratio**k / (1 + ratio) for k in range(scales))
    return SigmaRange(lower, tuple(low * ratio for low in lower), tied=True)


def block_starts(levels: int) -> tuple[float, ...]:
    """The paper's rule for any depth: half a pixel more at each level down, the same on the way up."""
    down = [0.5 * level for level in range(levels + 1)]
    return tuple(down + down[-2::-1])


def paper_schedule(scales: int = 5, levels: int = 4) -> list[SigmaRange]:
    """The paper's σ range of every block of a U with `levels` poolings: 2·levels + 1 ranges."""
    return [equal_range(start, start + 2.5, scales) for start in block_starts(levels)]
