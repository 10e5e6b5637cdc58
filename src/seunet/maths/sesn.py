r"""The steerable basis of SESN (Sosnovik, Szmaja, Smeulders: *Scale-Equivariant Steerable Networks*, 2020).

A basis function is a product of two 1-D functions of the same scale s,

    ψ_{nm}(y, x; s) = A_{nm} h_n(y; s) h_m(x; s),      h_n(x; s) = (1/s) Heₙ(x/s) exp(−x²/2s²),           (1)

with Heₙ the probabilists' Hermite polynomial and A_{nm} the one number that makes the sampled ψ_{nm} a unit
vector at the smallest scale.  ψ(·; s) = s⁻² ψ(·/s; 1) in the continuum, so filters with the same weights at
different scales are each other resized: shared weights make the layer equivariant, to the sampling error.

Which orders.  The paper says "order 4" and the basis has as many functions as a 3×3 filter has taps: nine.
`GRID_ORDERS` = {0, 1, 2}², total order up to 4, treats both axes alike, and its nine functions span every
3×3 filter at scale 1.  It is the default.  `TRUNCATED_ORDERS` is what the released code makes of "maximum
order 4, nine functions": the first nine pairs with n + m ≤ 4, which are (0…4, 0) and (0…3, 1).  On the three
taps of scale 1 He₃ is a multiple of He₁, and He₄ depends on He₀ and He₂, so these nine span only six
dimensions and hold no second derivative along x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seunet.maths.gaussian import hermite

Orders = tuple[tuple[int, int], ...]
"""(row order n, column order m) of each basis function."""

GRID_ORDERS: Orders = tuple((n, m) for n in range(3) for m in range(3))
TRUNCATED_ORDERS: Orders = tuple((n, m) for m in range(2) for n in range(5 - m))


def support_radius(scale: float) -> int:
    """⌈scale⌉: supports 3, 5, 7, 9, 11 at scales 1…5; between them the larger, so none ends within s."""
    return math.ceil(scale)


def hermite_functions(max_order: int, scale: float) -> Tensor:
    """[max_order + 1, 2·radius + 1] in float64: h_n(x; s) of (1), n = 0 … max_order, x = −radius … radius."""
    radius = support_radius(scale)
    z = torch.arange(-radius, radius + 1, dtype=torch.float64) / scale
    polynomials = torch.stack([hermite(n, z) for n in range(max_order + 1)])
    return polynomials * torch.exp(-z.square() / 2) / scale


def steerable_taps(scales: Sequence[float], max_order: int) -> list[Tensor]:
    """For each scale [max_order + 1, 2·radius + 1]: h_n(·; s) divided by its L2 norm at the smallest scale.

    The norm of a product is the product of the norms, so outer products of these are ψ of (1).
    """
    norms = torch.linalg.vector_norm(hermite_functions(max_order, min(scales)), dim=1, keepdim=True)
    return [hermite_functions(max_order, scale) / norms for scale in scales]
