"""DISCO's convolution: a 3×3 filter whose taps are spread by the scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from seunet.errors import InputError
from seunet.layers.shared_weight_conv import ScaleConvolution, ScaleOptions
from seunet.maths.disco import discrete_basis

MAX_FRACTIONAL_SCALE = 64
"""Between integers the filter is dense: 131 taps per side here."""


class DiscreteScaleConv2d(ScaleConvolution):
    r"""κ_s[o, c] = Σ_k weight[o, c, k] δ_k(·; s), with δ_k(·; s) the nine 3×3 deltas at spacing s.

    At an integer scale that is a 3×3 convolution dilated by s, and is run as one.  At another the nine
    functions are those that commute best with the two nearest integer scales (`seunet.maths.disco`).
    """

    def __init__(self, in_channels: int, out_channels: int, **options: Unpack[ScaleOptions]) -> None:
        super().__init__(in_channels, out_channels, basis=9, **options)
        if any(not scale.is_integer() and scale > MAX_FRACTIONAL_SCALE for scale in self.scales):
            given = list(options["scales"])
            raise InputError(f"`scales` (={given!r}) must be whole numbers above {MAX_FRACTIONAL_SCALE}")
        self.reset_parameters()

    def bases(self) -> Iterator[tuple[str, Tensor]]:
        for index, scale in enumerate(self.scales):
            if not scale.is_integer():
                yield f"basis_{index}", discrete_basis(scale)

    def convolve(self, image: Tensor, index: int) -> Tensor:
        scale = self.scales[index]
        if scale.is_integer():
            dilation = int(scale)
            return F.conv2d(
                image,
                self.weight.view(*self.weight.shape[:2], 3, 3),
                self.bias,
                padding=dilation,
                dilation=dilation,
            )
        basis = self.get_buffer(f"basis_{index}")
        filters = torch.einsum("ock,kij->ocij", self.weight, basis)
        return F.conv2d(image, filters, self.bias, padding=basis.shape[-1] // 2)
