"""A network as plain convolutions that any runtime has: separable passes stay separable, norms are folded in.

Every head is a chain of its own (heads meet nowhere before the fusion), with filters of its own radius.  There is no
question about sizes in it: a trace, a script and a graph are right for any height and width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d, pad

from seunet.errors import InputError
from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.layers.scalewise import ScaleNorm2d
from seunet.maths.fusion import FUSIONS
from seunet.maths.gaussian import full_taps, half_taps
from seunet.models.registry import PlainConv2d
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ConvolutionBlock, ScaleUNet


class FilteredThenMixed(nn.Module):
    """ReLU(b + Σ_ij A_ij · column_j(row_i(x))): for layers that have no more channels in than out."""

    def __init__(self, taps: Tensor, mixing: Tensor, bias: Tensor) -> None:
        """`taps` [order + 1, 2R + 1] correlate; `mixing` [basis, C_in, C_out], `bias` [C_out], the norm folded in."""
        super().__init__()
        orders, channels = taps.shape[0], mixing.shape[1]
        self.rows = nn.ModuleList(depthwise(taps[i], channels, along_rows=True) for i in range(orders))
        self.columns = nn.ModuleList(depthwise(taps[j], channels, along_rows=False) for j in range(orders))
        self.orders = orders
        self.mix = pointwise(mixing.flatten(0, 1).T, bias)

    def forward(self, maps: Tensor) -> Tensor:
        jets: list[Tensor] = []
        for i, row in enumerate(self.rows):
            filtered = row(maps)
            for j, column in enumerate(self.columns):
                if i + j < self.orders:
                    jets.append(column(filtered))
        return self.mix(torch.cat(jets, 1)).relu()  # type: ignore[no-any-return]


class MixedThenFiltered(nn.Module):
    """ReLU(b + Σ_j column_j(Σ_i row_i(A_ij · x))), the same sum: filters fewer maps where fewer come out."""

    def __init__(self, taps: Tensor, mixing: Tensor, bias: Tensor) -> None:
        super().__init__()
        orders, outputs = taps.shape[0], mixing.shape[2]
        self.rows = nn.ModuleList(depthwise(taps[i], outputs, along_rows=True) for i in range(orders))
        self.columns = nn.ModuleList(depthwise(taps[j], outputs, along_rows=False) for j in range(orders))
        self.columns[0].bias = nn.Parameter(bias)
        self.orders, self.outputs = orders, outputs
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


class PortableHead(nn.Module):
    """One head: [B, C, H, W] → logits [B, classes, H, W]."""

    def __init__(self, model: ScaleUNet, multiple: int = 1) -> None:
        """`multiple`: inner maps get channels of zeros up to a multiple of it, for runtimes that work in blocks."""
        super().__init__()
        self.encoder = nn.ModuleList(
            _block(block, multiple if number else 1, 1, multiple)  # type: ignore[arg-type]
            for number, block in enumerate(model.encoder)
        )
        reducers = (reducer.convolution for reducer in model.reducers)
        self.reducers = nn.ModuleList(_copy(one, multiple, multiple) for one in reducers)  # type: ignore[arg-type]
        self.decoder = nn.ModuleList(_block(block, multiple, 2, multiple) for block in model.decoder)  # type: ignore[arg-type]
        self.head = _copy(model.head.convolution, multiple, 1)
        self.pooling = model.pooling.kind

    def forward(self, images: Tensor) -> Tensor:
        maps = images
        skips: list[Tensor] = []
        for number, block in enumerate(self.encoder):
            if number > 0:
                skips.append(maps)
                maps = halved(maps, self.pooling)
            maps = block(maps)
        for reducer, block in zip(self.reducers, self.decoder):  # noqa: B905 (TorchScript knows no `strict`)
            skip = skips.pop()
            rising = reducer(maps)
            if self.pooling != "none":
                rising = doubled(rising, skip.shape[2], skip.shape[3])
            maps = block(torch.cat([skip, rising], 1))
        return self.head(maps)  # type: ignore[no-any-return]


def halved(maps: Tensor, pooling: str) -> Tensor:
    """Pooling by 2×2, rounded down, never below one pixel."""
    if pooling == "none":
        return maps
    height, width = max(maps.shape[2] // 2, 1), max(maps.shape[3] // 2, 1)
    if pooling == "max":
        return max_pool2d(maps, 2, ceil_mode=True)[:, :, :height, :width]
    return avg_pool2d(maps, 2, ceil_mode=True, count_include_pad=False)[:, :, :height, :width]


def doubled(maps: Tensor, height: int, width: int) -> Tensor:
    """Bilinear × 2, the last row and column once more, cut to the size of the skip connection."""
    large = interpolate(maps, scale_factor=2.0, mode="bilinear", align_corners=False, recompute_scale_factor=False)
    return pad(large, [0, 1, 0, 1], mode="replicate")[:, :, :height, :width]


class PortableNetwork(nn.Module):
    """Heads side by side and their fusion: RGB in 0 … 1 [B, 3, H, W] → probabilities [B, classes, H, W]."""

    def __init__(self, heads: Sequence[PortableHead], fusion: str) -> None:
        super().__init__()
        if fusion not in FUSIONS:
            raise InputError(f"fusion {fusion!r} has no portable form; use {', '.join(FUSIONS)}")
        self.heads, self.fusion = nn.ModuleList(heads), fusion

    def forward(self, images: Tensor) -> Tensor:
        found: list[Tensor] = []
        for head in self.heads:
            found.append(head(images).softmax(1))
        if len(found) == 1:
            return found[0]
        heads = torch.stack(found, 1)
        return (heads * fusion_weights(heads, self.fusion)[:, :, None]).sum(1)


def fusion_weights(heads: Tensor, fusion: str) -> Tensor:
    """How much each head counts at each pixel: [B, γ, classes, H, W] → [B, γ, H, W]."""
    if heads.shape[2] == 1:
        sure = heads[:, :, 0]
    else:
        largest = heads.topk(2, dim=2).values
        sure = largest[:, :, 0] - largest[:, :, 1]
    if fusion == "mean":
        return torch.full_like(sure, 1.0 / heads.shape[1])
    if fusion == "p_dist":
        return torch.zeros_like(sure).scatter(1, sure.argmax(1, keepdim=True), 1.0)
    return sure.softmax(1)


def portable_network(
    model: ScaleUNet, heads: Sequence[int] | None = None, fusion: str = "p_ens", multiple: int = 1
) -> PortableNetwork:
    """`model` with these heads (all if None), in evaluation mode; σ are those of the model (`at_scale`)."""
    if model.projection is not None:
        raise InputError(
            f"{model.name} has no portable form: its scales meet in a maximum before the head, with filters that are "
            "not separable; export a seunet, njet, gaussder or unet"
        )
    model = model.eval()
    with torch.no_grad():
        if isinstance(model, SEUNet) and model.heads > 1:
            parts = [model.only_scale(number) for number in (range(model.heads) if heads is None else heads)]
        else:
            parts = [model]  # type: ignore[list-item]
        return PortableNetwork([PortableHead(part, multiple) for part in parts], fusion).eval().requires_grad_(False)


def _block(block: ConvolutionBlock, inward: int, parts: int, multiple: int) -> nn.Sequential:
    """`parts` maps lie side by side in what the first layer reads, each filled up to a multiple of `inward`."""
    (first, second), (norm, other) = block.convolutions, block.norms
    return nn.Sequential(
        _layer(first, norm, inward, parts, multiple),  # type: ignore[arg-type]
        _layer(second, other, multiple, 1, multiple),  # type: ignore[arg-type]
    )


def _layer(convolution: nn.Module, norm: ScaleNorm2d, inward: int, parts: int, outward: int) -> nn.Module:
    folded = norm.folded()
    if folded is None:
        raise InputError("norms without running statistics cannot be exported; train the model first")
    scale, shift = folded[:, 0]
    bias = filled(shift, 0, outward)
    if isinstance(convolution, PlainConv2d):
        weight = convolution.convolution.weight * scale[:, None, None, None]
        bias = filled(convolution.convolution.bias * scale + shift, 0, outward)
        return DenseThenRelu(filled(filled(weight, 1, inward, parts), 0, outward), bias)
    if not isinstance(convolution, GaussianConv2d):
        raise InputError(f"{type(convolution).__name__} has no portable form")
    half = half_taps(*convolution.filters(), convolution.order, convolution.discretisation)
    taps = full_taps(half)[0].flip(-1).float()
    mixing = filled(filled(convolution.coefficients * scale, 1, inward, parts), 2, outward)
    kind = FilteredThenMixed if mixing.shape[1] <= mixing.shape[2] else MixedThenFiltered
    return kind(taps, mixing, bias)


def filled(values: Tensor, axis: int, multiple: int, parts: int = 1) -> Tensor:
    """Each of `parts` equal pieces along `axis` with zeros up to a multiple."""
    pieces = []
    for piece in values.chunk(parts, axis):
        more = list(piece.shape)
        more[axis] = -piece.shape[axis] % multiple
        pieces.append(torch.cat([piece, piece.new_zeros(more)], axis))
    return torch.cat(pieces, axis)


def _copy(convolution: nn.Conv2d, inward: int, outward: int) -> nn.Conv2d:
    matrix = filled(filled(convolution.weight[:, :, 0, 0], 1, inward), 0, outward)
    return pointwise(matrix, filled(convolution.bias, 0, outward))  # type: ignore[arg-type]
