"""What surrounds the convolution and treats all scales alike: norm, pooling, 1×1 mixing; and the maximum over them."""

from __future__ import annotations

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad

from seunet.errors import InputError, check_known
from seunet.kernels.dispatch import (
    Pointwise,
    batch_norm_relu,
    mixed_pixels,
    pointwise,
    runs_in_whole_vectors,
)
from seunet.kernels.kept import Kept
from seunet.kernels.resizing import max_pool, pooled_at_any_size, pooling_window
from seunet.layers.hooks import hooked
from seunet.layers.synced_norm import remember, synced_batch_norm, together
from seunet.recording import is_recording

NORMS: Final = ("group", "shared")


class ScaleNorm2d(nn.Module):
    """Batch normalisation of [B, γ, C, H, W]: statistics and affine of each scale ("group", the paper's), or one set
    for all scales ("shared": what is normalised does not depend on the scale either)."""

    def __init__(self, channels: int, *, scales: int, kind: str = "group") -> None:
        super().__init__()
        check_known("norm", kind, NORMS)
        self.scales, self.channels, self.kind = scales, channels, kind
        self.norm = nn.BatchNorm2d(channels * scales if kind == "group" else channels)
        self.synced = False
        """Whether a batch is that of all processes that train together, or that of this one."""
        self._kept = Kept()

    def forward(self, features: Tensor, relu: bool = False) -> Tensor:
        flat = features.flatten(1, 2) if self.kind == "group" else features.flatten(0, 1)
        if self.synced and self.norm.training and together():
            normed = synced_batch_norm(flat, self.norm)
            return (normed.relu() if relu else normed).view(features.shape)
        if relu and self._learns_by_batch(flat):
            norm = self.norm
            found, mean, variance = batch_norm_relu(flat, norm.weight, norm.bias, norm.eps)
            remember(norm, mean, variance, flat.shape[0] * flat.shape[2] * flat.shape[3])
            return found.view(features.shape)
        result: Tensor = self.norm(flat)
        # In place before the view: autograd would copy the whole map for an in-place change of a view.
        return (result.relu_() if relu else result).view(features.shape)

    def _learns_by_batch(self, flat: Tensor) -> bool:
        """Whether this is the ordinary case of training, for which there is one function with the ReLU."""
        norm = self.norm
        ordinary = type(norm) is nn.BatchNorm2d and norm.training and norm.momentum is not None
        return ordinary and flat.shape[0] * flat.shape[2] * flat.shape[3] > 1 and runs_in_whole_vectors(flat)

    def keep_scale(self, number: int) -> None:
        """Leave the statistics and affine of this scale alone of all γ, shared with whoever shared them."""
        if self.kind == "group" and self.scales > 1:
            whole, self.norm = self.norm, nn.BatchNorm2d(self.channels).train(self.norm.training)
            mine = slice(number * self.channels, (number + 1) * self.channels)
            self.norm.weight = nn.Parameter(whole.weight.detach()[mine])
            self.norm.bias = nn.Parameter(whole.bias.detach()[mine])
            self.norm.running_mean = whole.running_mean[mine]  # type: ignore[index]
            self.norm.running_var = whole.running_var[mine]  # type: ignore[index]
        self.scales = 1

    def folded(self) -> Tensor | None:
        """a and b of y = a·x + b with the running statistics, [2, γ, C]; None while they are being learnt."""
        norm = self.norm
        if norm.training or norm.running_mean is None or norm.running_var is None:
            return None
        given = norm.weight, norm.bias, norm.running_mean, norm.running_var
        return self._kept.made(_folded, given, norm.eps, self.scales, self.channels)


def _folded(
    weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, epsilon: float, scales: int, channels: int
) -> Tensor:
    scale = weight / torch.sqrt(variance + epsilon)
    pair = torch.stack([scale, bias - scale * mean])
    return pair.view(2, -1, channels).expand(2, scales, channels)


LEAST_PRODUCT: Final = (8, 1024)
"""A matrix product gets a multiple of so many rows and at least so many columns where its rounding must not depend on
its size: libraries compute smaller ones by another routine."""


class SharedPointwise(nn.Module):
    """A 1×1 convolution that all scales share: [B, γ, C_in, H, W] → [B, γ, C_out, H, W]."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel_size=1)
        self._kept = Kept()

    def parts(self) -> Pointwise:
        """What it computes with."""
        return Pointwise(self.convolution.weight.flatten(1), self.convolution.bias, self._kept)  # type: ignore[arg-type]

    def forward(self, features: Tensor) -> Tensor:
        if hooked(self.convolution):
            seen: Tensor = self.convolution(features.flatten(0, 1))
            return seen.view(*features.shape[:2], *seen.shape[1:])
        if not torch.is_grad_enabled() and runs_in_whole_vectors(features):
            return self.tile_invariant(features)
        return pointwise(features, self.parts())

    def tile_invariant(self, features: Tensor) -> Tensor:
        """The same, with a result for a pixel that does not depend on where it lies, nor on how many there are.

        A slide cut into other tiles would otherwise differ in the last bit, and sometimes in a label.
        """
        if runs_in_whole_vectors(features):
            return mixed_pixels(features, *self.parts())
        outputs, (rows, columns) = self.convolution.out_channels, LEAST_PRODUCT
        weight = pad(self.convolution.weight.flatten(1), (0, 0, 0, -outputs % rows))
        bias = pad(self.convolution.bias, (0, -outputs % rows))  # type: ignore[arg-type]
        pixels = features.flatten(0, 1).flatten(2)
        count = pixels.shape[2]
        wide = pad(pixels, (0, max(0, columns - count)))
        mixed = torch.baddbmm(bias[None, :, None], weight.expand(len(wide), -1, -1), wide)
        return mixed[:, :outputs, :count].reshape(*features.shape[:2], outputs, *features.shape[3:])


POOLINGS: Final = ("average", "max", "none")


class Pooling(nn.Module):
    """Halve height and width (rounding down, never below 1) by "max" or "average"; "none" keeps them."""

    def __init__(self, kind: str = "max") -> None:
        super().__init__()
        check_known("pooling", kind, POOLINGS)
        self.kind = kind

    def forward(self, features: Tensor) -> Tensor:
        if self.kind == "none":
            return features
        if self.kind == "max":
            return max_pool(features)
        if is_recording():
            return pooled_at_any_size(features, partial(avg_pool2d, count_include_pad=False))
        pooled = avg_pool2d(features.flatten(0, 1), pooling_window(features))
        return pooled.view(*features.shape[:3], *pooled.shape[2:])


class ScaleProjection(nn.Module):
    """y[b, 0, c, p] = max_s x[b, s, c, p]: [B, S, C, H, W] → [B, 1, C, H, W].

    A change of scale of the image moves the responses along s, so their maximum stays.
    """

    def forward(self, maps: Tensor) -> Tensor:
        if maps.ndim != 5 or maps.shape[1] < 1:
            raise InputError(f"`maps` (of shape {list(maps.shape)}) must be [B, scales, C, H, W] with scales ≥ 1")
        return maps.amax(1, keepdim=True)
