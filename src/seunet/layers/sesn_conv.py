"""SESN's convolution: a linear combination of Hermite functions, shared over scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from seunet.errors import InputError
from seunet.layers.shared_weight_conv import ScaleConvolution, ScaleOptions
from seunet.limits import MAX_ORDER
from seunet.maths.sesn import GRID_ORDERS, Orders, steerable_taps

WIDEST_DENSE_FILTER = 5
"""Taps per side up to which one k×k convolution beats the two steps (benchmarks/measure/network/rival_layers.py)."""


class SteerableConv2d(ScaleConvolution):
    r"""κ_s[o, c] = Σ_{nm} weight[o, c, nm] ψ_n(y; s) ψ_m(x; s), support 2⌈s⌉ + 1 (`seunet.maths.sesn`).

    Small filters are composed and run as one k×k convolution.  Large ones take two steps: the rows are
    filtered with every ψ_m, then one k×1 convolution has the taps Σ_n weight[o, c, nm] ψ_n(y; s).  With the
    default nine functions that is 3·C·C′·k multiplications per pixel instead of C·C′·k².
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, orders: Orders = GRID_ORDERS, **options: Unpack[ScaleOptions]
    ) -> None:
        super().__init__(in_channels, out_channels, basis=len(_checked_orders(orders)), **options)
        self.orders = orders
        self.reset_parameters()

    def bases(self) -> Iterator[tuple[str, Tensor]]:
        rows, columns = zip(*self.orders, strict=True)
        for index, taps in enumerate(steerable_taps(self.scales, max(rows + columns))):
            # [basis, column orders, k]: ψ_n of each function, in the place of its column order m.
            placed = F.one_hot(torch.tensor(columns), max(columns) + 1).to(taps)[:, :, None] * taps[list(rows)][:, None]
            yield f"column_taps_{index}", placed
            yield f"row_taps_{index}", taps[: max(columns) + 1]

    def convolve(self, image: Tensor, index: int) -> Tensor:
        row_taps = self.get_buffer(f"row_taps_{index}")
        mixing = torch.einsum("ocb,bmi->ocmi", self.weight, self.get_buffer(f"column_taps_{index}"))
        size = row_taps.shape[1]
        radius = size // 2
        if size <= WIDEST_DENSE_FILTER:
            return F.conv2d(image, torch.einsum("ocmi,mj->ocij", mixing, row_taps), self.bias, padding=radius)
        rows = row_taps.repeat(self.in_channels, 1)[:, None, None, :]
        filtered = F.conv2d(image, rows, padding=(0, radius), groups=self.in_channels)
        return F.conv2d(filtered, mixing.flatten(1, 2)[..., None], self.bias, padding=(radius, 0))


def _checked_orders(orders: Orders) -> Orders:
    for pair in orders:
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not all(isinstance(n, int) and 0 <= n <= MAX_ORDER for n in pair)
        ):
            raise InputError(f"`orders` (={orders!r}) must hold pairs of whole numbers from 0 to {MAX_ORDER}")
    if not orders:
        raise InputError("`orders` (=()) must hold at least one pair")
    return orders
