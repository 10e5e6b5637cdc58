"""Arithmetic whose result for a pixel does not depend on where in an array the pixel lies, nor on how many there are.

Libraries treat the rest of an array that fills no vector, and matrices that are small or narrow, by other code that
rounds otherwise.  A slide cut into other tiles would then differ in the last bit, and sometimes in a label.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from seunet.layers import SharedPointwise

OUTPUTS: Final = 8
"""A matrix product gets a multiple of this many rows: narrower ones are computed by another routine."""

PIXELS: Final = 1024
"""… and at least this many columns."""


def mixed_channels(pointwise: SharedPointwise, features: Tensor) -> Tensor:
    """`pointwise(features)`: [B, γ, C_in, H, W] → [B, γ, C_out, H, W]."""
    convolution = pointwise.convolution
    outputs, missing = convolution.out_channels, -convolution.out_channels % OUTPUTS
    weight = pad(convolution.weight.flatten(1), (0, 0, 0, missing))
    bias = pad(convolution.bias, (0, missing))  # type: ignore[arg-type]
    pixels = features.flatten(0, 1).flatten(2)
    count = pixels.shape[2]
    if count < PIXELS:
        pixels = pad(pixels, (0, PIXELS - count))
    mixed = torch.baddbmm(bias[None, :, None], weight.expand(len(pixels), -1, -1), pixels)
    return mixed[:, :outputs, :count].reshape(*features.shape[:2], outputs, *features.shape[3:])
