"""The layers of a network as plain convolutions: three ways to write the sum of a Gaussian layer, and the plain one.

Runtimes filter along rows faster than along columns, most of all where they add to what is there: whatever is computed
more often is a row.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FilteredThenMixed(nn.Module):
    """ReLU(b + Σ_ij A_ij · row_i(column_j(x))): for layers that have fewer channels in than out."""

    def __init__(self, taps: Tensor, mixing: Tensor, bias: Tensor) -> None:
        """`taps` [order + 1, 2R + 1] correlate; `mixing` [basis, C_in, C_out], `bias` [C_out], the norm folded in."""
        super().__init__()
        orders, channels = taps.shape[0], mixing.shape[1]
        self.rows = nn.ModuleList(depthwise(taps[i], channels, along_rows=True) for i in range(orders))
        self.columns = nn.ModuleList(depthwise(taps[j], channels, along_rows=False) for j in range(orders))
        self.orders = orders
        self.mix = pointwise(mixing.flatten(0, 1).T, bias)

    def forward(self, maps: Tensor) -> Tensor:
        columns: list[Tensor] = []
        for column in self.columns:
            columns.append(column(maps))
        jets: list[Tensor] = []
        for i, row in enumerate(self.rows):
            for filtered in columns[: self.orders - i]:
                jets.append(row(filtered))
        return self.mix(torch.cat(jets, 1)).relu()  # type: ignore[no-any-return]


class MixedBetween(nn.Module):
    """ReLU(b + Σ_i row_i(Σ_j A_ij · column_j(x))), the same sum: the fewest filters where as many come out as go in."""

    def __init__(self, taps: Tensor, mixing: Tensor, bias: Tensor) -> None:
        super().__init__()
        orders, channels, outputs = taps.shape[0], mixing.shape[1], mixing.shape[2]
        self.columns = nn.ModuleList(depthwise(taps[j], channels, along_rows=False) for j in range(orders))
        self.rows = nn.ModuleList(depthwise(taps[i], outputs, along_rows=True) for i in range(orders))
        self.rows[0].bias = nn.Parameter(bias)
        self.orders = orders
        # Pairs lie by i, then by j: those of a row follow each other.
        parts = mixing.split([orders - i for i in range(orders)])  # type: ignore[no-untyped-call]
        self.mixes = nn.ModuleList(pointwise(part.flatten(0, 1).T) for part in parts)

    def forward(self, maps: Tensor) -> Tensor:
        columns: list[Tensor] = []
        for column in self.columns:
            columns.append(column(maps))
        total: list[Tensor] = []
        for i, (mix, row) in enumerate(zip(self.mixes, self.rows)):  # noqa: B905 (TorchScript knows no `strict`)
            total.append(row(mix(torch.cat(columns[: self.orders - i], 1))))
        return (torch.stack(total).sum(0) if len(total) > 1 else total[0]).relu()


def places_of_column(orders: int, j: int) -> list[int]:
    """Where among the coefficients those of (row i, column j) stand, for each i; pairs lie by i, then by j."""
    return [sum(orders - k for k in range(i)) + j for i in range(orders - j)]


class MixedThenFiltered(nn.Module):
    """ReLU(b + Σ_j column_j(Σ_i row_i(A_ij · x))), the same sum: filters fewer maps where fewer come out."""

    def __init__(self, taps: Tensor, mixing: Tensor, bias: Tensor) -> None:
        super().__init__()
        orders, outputs = taps.shape[0], mixing.shape[2]
        self.rows = nn.ModuleList(depthwise(taps[i], outputs, along_rows=True) for i in range(orders))
        self.columns = nn.ModuleList(depthwise(taps[j], outputs, along_rows=False) for j in range(orders))
        self.columns[0].bias = nn.Parameter(bias)
        self.orders, self.outputs, self.basis = orders, outputs, mixing.shape[0]
        self.mix = pointwise(mixing.permute(0, 2, 1).flatten(0, 1))

    def forward(self, maps: Tensor) -> Tensor:
        mixed = self.mix(maps).split(self.outputs, 1)
        total: list[Tensor] = []
        for j, column in enumerate(self.columns):
            sums: list[Tensor] = []
            place = 0
            for i, row in enumerate(self.rows):
                if i + j < self.orders:
                    sums.append(row(mixed[place + j]))
                place += self.orders - i
            total.append(column(torch.stack(sums).sum(0) if len(sums) > 1 else sums[0]))
        return (torch.stack(total).sum(0) if len(total) > 1 else total[0]).relu()


def depthwise(taps: Tensor, channels: int, along_rows: bool) -> nn.Conv2d:
    """One 1-D filter for every channel."""
    radius = taps.shape[0] // 2
    kernel, padding = ((1, 2 * radius + 1), (0, radius)) if along_rows else ((2 * radius + 1, 1), (radius, 0))
    layer = nn.Conv2d(channels, channels, kernel, padding=padding, groups=channels, bias=False)
    layer.weight.data.copy_(taps.view(1, 1, *kernel).expand_as(layer.weight))
    return layer


def pointwise(matrix: Tensor, bias: Tensor | None = None) -> nn.Conv2d:
    """A 1×1 convolution by `matrix` [C_out, C_in]."""
    layer = nn.Conv2d(matrix.shape[1], matrix.shape[0], 1, bias=bias is not None)
    layer.weight.data.copy_(matrix[:, :, None, None])
    if bias is not None and layer.bias is not None:
        layer.bias.data.copy_(bias)
    return layer


class DenseThenRelu(nn.Module):
    """The plain UNet's convolution."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(weight.shape[1], weight.shape[0], 3, padding=1)
        self.convolution.weight.data.copy_(weight)
        self.convolution.bias.data.copy_(bias)  # type: ignore[union-attr]

    def forward(self, maps: Tensor) -> Tensor:
        return self.convolution(maps).relu()  # type: ignore[no-any-return]
