"""The bases of SESN and DISCO as whole filters of one size.

The layers never make them: SESN's runs in one dimension after the other, DISCO's is dilated.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seunet.maths import discrete_basis, sesn


def steerable_basis(scales: Sequence[float], orders: sesn.Orders = sesn.GRID_ORDERS) -> Tensor:
    """[basis, scales, size, size] in float64: ψ_{nm}(·; s), zero-padded to the largest support."""
    size = 2 * sesn.support_radius(max(scales)) + 1
    rows, columns = zip(*orders, strict=True)
    taps = sesn.steerable_taps(scales, max(rows + columns))
    products = [torch.einsum("bi,bj->bij", tap[list(rows)], tap[list(columns)]) for tap in taps]
    return torch.stack([pad_to_size(product, size) for product in products], 1)


def pad_to_size(filters: Tensor, size: int) -> Tensor:
    """[..., k, k] → [..., size, size], zeros all round; both sizes odd."""
    margin = (size - filters.shape[-1]) // 2
    return torch.nn.functional.pad(filters, [margin] * 4)


def discrete_bases(scales: tuple[float, ...]) -> Tensor:
    """[9, scales, size, size]: the basis at each scale, zero-padded to the largest support."""
    bases = [discrete_basis(scale) for scale in scales]
    size = max(basis.shape[-1] for basis in bases)
    return torch.stack([pad_to_size(basis, size) for basis in bases], 1)
