"""Any device: 1-D passes by grouped `conv2d`, then one matrix product.  Plain torch, so autograd does the rest."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from seunet.maths.gaussian import full_taps


def jet_convolution(image: Tensor, coefficients: Tensor, taps: Tensor) -> Tensor:
    """[B, scales or 1, C_in, H, W] → [B, scales, C_out, H, W], zero padding.

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
