"""Dense and obviously right: the 2-D filters of paper eq. 4 in one `conv2d` a scale."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from seunet.maths.gaussian import full_taps
from seunet.maths.jet import jet_basis


def dense_filters(taps: Tensor, coefficients: Tensor) -> Tensor:
    """F(c_out, c_in, y, x) = Σ_ij α_ij,c_in,c_out G^ij(y, x) from half taps [order + 1, R + 1]: [C_out, C_in, τ, τ]."""
    return torch.einsum("kyx,kio->oiyx", jet_basis(full_taps(taps)), coefficients)


def jet_convolution(image: Tensor, coefficients: Tensor, taps: Tensor, radii: Sequence[int]) -> Tensor:
    """[B, scales or 1, C_in, H, W] → [B, scales, C_out, H, W], zero padding."""
    results = []
    for scale, radius in enumerate(radii):
        filters = dense_filters(taps[scale, :, : radius + 1].to(image.dtype), coefficients)
        source = image[:, scale if image.shape[1] > 1 else 0]
        # conv2d correlates; a convolution is the correlation with the mirrored filter.
        results.append(conv2d(source, filters.flip(2, 3), padding=radius))
    return torch.stack(results, dim=1)
