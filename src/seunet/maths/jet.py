"""The N-jet: all derivatives of total order ≤ N, as products of 1-D filters (paper eq. 3 and 4)."""

from __future__ import annotations

import torch
from torch import Tensor


def jet_orders(order: int) -> list[tuple[int, int]]:
    """(i, j) with i + j ≤ order, i along x and j along y.  Everywhere in the package the basis is in this order.

    >>> jet_orders(1)
    [(0, 0), (0, 1), (1, 0)]
    """
    return [(i, j) for i in range(order + 1) for j in range(order + 1 - i)]


def jet_size(order: int) -> int:
    """How many derivatives the jet has: (N + 1)(N + 2)/2."""
    return (order + 1) * (order + 2) // 2


def jet_basis(taps: Tensor) -> Tensor:
    """Full 1-D taps [order + 1, size] → the 2-D filters G^{i,j}(y, x) of the jet, [basis, size, size]."""
    return torch.stack([torch.outer(taps[j], taps[i]) for i, j in jet_orders(len(taps) - 1)])
