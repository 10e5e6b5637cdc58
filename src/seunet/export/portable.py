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
from seunet.export.portable_layers import (
    DenseThenRelu,
    FilteredThenMixed,
    MixedBetween,
    MixedThenFiltered,
    pointwise,
)
from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.layers.scalewise import ScaleNorm2d
from seunet.maths.fusion import FUSIONS
from seunet.maths.gaussian import full_taps, half_taps
from seunet.models.convolution_block import ConvolutionBlock
from seunet.models.registry import PlainConv2d
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet


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
    inputs, outputs = mixing.shape[1:]
    if inputs == outputs:
        return MixedBetween(taps, mixing, bias)
    return (FilteredThenMixed if inputs < outputs else MixedThenFiltered)(taps, mixing, bias)


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
