"""Plain torch: dense and obviously right, the 2-D filters of paper eq. 4 in one `conv2d`; and by 1-D passes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from seunet.maths.gaussian import full_taps, jet_basis


def dense_filters(taps: Tensor, coefficients: Tensor) -> Tensor:
    """F(c_out, c_in, y, x) = Σ_ij α_ij,c_in,c_out G^ij(y, x) from half taps [order + 1, R + 1]: [C_out, C_in, τ, τ]."""
    return torch.einsum("kyx,kio->oiyx", jet_basis(full_taps(taps)), coefficients)


def jet_convolution(image: Tensor, coefficients: Tensor, taps: Tensor) -> Tensor:
    """[B, scales or 1, C_in, H, W] → [B, scales, C_out, H, W], zero padding.

    One convolution whose groups are the scales; the filters of all scales have the size of the largest, as the taps do.
    """
    batch, _, channels, height, width = image.shape
    scales, reach = taps.shape[0], taps.shape[2] - 1
    filters = torch.cat([dense_filters(half.to(image.dtype), coefficients) for half in taps])
    planes = image.expand(batch, scales, channels, height, width).flatten(1, 2)
    # conv2d correlates; a convolution is the correlation with the mirrored filter.
    result = conv2d(planes, filters.flip(2, 3), padding=reach, groups=scales)
    return result.view(batch, scales, coefficients.shape[2], height, width)


def separable_convolution(image: Tensor, coefficients: Tensor, taps: Tensor) -> Tensor:
    """The same by 1-D passes and one matrix product, on any device; autograd does the rest.

    The scales are the groups of each `conv2d` (their filters are padded with zeros to one size): horizontally to all
    orders i at once, then vertically to the orders 0 … N − i of each i.
    """
    batch, _, channels, height, width = image.shape
    scales, orders, reach = taps.shape[0], taps.shape[1], taps.shape[2] - 1
    # conv2d correlates: mirror the filters.
    filters = full_taps(taps).flip(-1).to(image.dtype)
    planes = image.expand(batch, scales, channels, height, width).transpose(1, 2)
    planes = planes.reshape(batch * channels, scales, height, width)
    rows = conv2d(planes, filters.reshape(scales * orders, 1, 1, -1), padding=(0, reach), groups=scales)
    rows = rows.view(batch * channels, scales, orders, height, width)
    jets = []
    for i in range(orders):
        columns = filters[:, : orders - i].reshape(-1, 1, 2 * reach + 1, 1)
        jet = conv2d(rows[:, :, i], columns, padding=(reach, 0), groups=scales)
        jets.append(jet.view(batch, channels, scales, orders - i, height, width))
    return torch.einsum("bcskhw,kco->bsohw", torch.cat(jets, dim=3), coefficients.to(jets[0].dtype))
