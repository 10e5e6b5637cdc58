"""What surrounds the convolution and treats all scales alike: norm, pooling, upsampling, 1×1 mixing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d, pad

from seunet.errors import InputError, unknown_name

NORMS: Final = ("group", "shared")


class ScaleNorm2d(nn.Module):
    """Batch normalisation of [B, γ, C, H, W]: statistics and affine of each scale ("group", the paper's), or one set
    for all scales ("shared": what is normalised does not depend on the scale either)."""

    def __init__(self, channels: int, *, scales: int, kind: str = "group") -> None:
        super().__init__()
        if kind not in NORMS:
            raise unknown_name("norm", kind, NORMS)
        self.scales, self.channels, self.kind = scales, channels, kind
        self.norm = nn.BatchNorm2d(channels * scales if kind == "group" else channels)

    def forward(self, features: Tensor, relu: bool = False) -> Tensor:
        flat = features.flatten(1, 2) if self.kind == "group" else features.flatten(0, 1)
        result: Tensor = self.norm(flat)
        # In place before the view: autograd would copy the whole map for an in-place change of a view.
        return (result.relu_() if relu else result).view(features.shape)

    def folded(self) -> Tensor | None:
        """a and b of y = a·x + b with the running statistics, [2, γ, C]; None while they are being learnt."""
        norm = self.norm
        if norm.training or norm.running_mean is None or norm.running_var is None:
            return None
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        pair = torch.stack([scale, norm.bias - scale * norm.running_mean])
        return pair.view(2, -1, self.channels).expand(2, self.scales, self.channels)


class SharedPointwise(nn.Module):
    """A 1×1 convolution that all scales share: [B, γ, C_in, H, W] → [B, γ, C_out, H, W]."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def forward(self, features: Tensor) -> Tensor:
        # A batched matrix product: a 1×1 `conv2d` is several times slower on the CPU in this memory layout.
        weight, bias = self.convolution.weight.flatten(1), self.convolution.bias
        pixels = features.flatten(0, 1).flatten(2)
        mixed = torch.baddbmm(bias[None, :, None], weight.expand(len(pixels), -1, -1), pixels)  # type: ignore[index]
        return mixed.view(*features.shape[:2], -1, *features.shape[3:])


_POOLINGS: Final[dict[str, Callable[..., Tensor]]] = {"max": max_pool2d, "average": avg_pool2d}
POOLINGS: Final = (*sorted(_POOLINGS), "none")


class Pooling(nn.Module):
    """Halve height and width (rounding down, never below 1) by "max" or "average"; "none" keeps them."""

    def __init__(self, kind: str = "max") -> None:
        super().__init__()
        if kind not in POOLINGS:
            raise unknown_name("pooling", kind, POOLINGS)
        self.kind = kind

    def forward(self, features: Tensor) -> Tensor:
        if self.kind == "none":
            return features
        window = min(2, features.shape[3]), min(2, features.shape[4])
        pooled = _POOLINGS[self.kind](features.flatten(0, 1), window)
        return pooled.view(*features.shape[:3], *pooled.shape[2:])


def upsample_to(features: Tensor, height: int, width: int) -> Tensor:
    """Bilinear × 2, then the last row or column repeated or cropped to the size of the skip connection."""
    if features.shape[3:] == (height, width):
        return features
    flat = features.flatten(0, 1)
    # Corners are not aligned: what a pixel becomes then does not depend on the size of the image.
    large = interpolate(flat, scale_factor=2, mode="bilinear", align_corners=False)
    more = height - large.shape[2], width - large.shape[3]
    if max(more) > 1:
        raise InputError(f"features of size {list(features.shape[3:])} do not belong to a {height}×{width} map")
    if any(more):
        large = pad(large, (0, max(more[1], 0), 0, max(more[0], 0)), mode="replicate")[..., :height, :width]
    return large.reshape(*features.shape[:3], height, width)
