"""The scaling operator (S_s f)(x) = f(x/s) on images and masks (paper eq. 1)."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate, pad

from seunet.errors import InputError


def scaled_size(size_px: int, scale: float) -> int:
    """How many pixels `size_px` become: round(size · s)."""
    return round(size_px * scale)


def rescale(images: Tensor, scale: float, antialias: bool = False) -> Tensor:
    """S_s by bilinear interpolation, pixel centres at (i + ½): [B, C, H, W] → [B, C, ~sH, ~sW].

    Without antialiasing, as in the paper; with it, shrinking averages over all source pixels.
    """
    return _resize(images, scale, "bilinear", antialias)


def rescale_mask(masks: Tensor, scale: float) -> Tensor:
    """S_s by the nearest pixel: [B, H, W] of integers → [B, ~sH, ~sW] of the same integers."""
    return _resize(masks[:, None].double(), scale, "nearest-exact", False)[:, 0].to(masks.dtype)


def rescale_pixels(rgb: NDArray[np.uint8], scale: float, antialias: bool = False) -> NDArray[np.uint8]:
    """`rescale` of an image as files have it: uint8 [height, width, 3], rounded."""
    if scale == 1:
        return rgb
    planes = torch.from_numpy(np.ascontiguousarray(rgb.transpose(2, 0, 1)))[None].float()
    result = rescale(planes, scale, antialias)[0].round().clamp(0, 255).to(torch.uint8)
    return np.ascontiguousarray(result.numpy().transpose(1, 2, 0))


def resize(images: Tensor, height: int, width: int, antialias: bool = False) -> Tensor:
    """S_s with the size it must have in the end, as on the way back: [B, C, H, W] → [B, C, height, width]."""
    if images.shape[-2:] == (height, width):
        return images
    return interpolate(images, size=(height, width), mode="bilinear", antialias=antialias)


def _resize(images: Tensor, scale: float, mode: str, antialias: bool) -> Tensor:
    if not math.isfinite(scale) or scale <= 0:
        raise InputError(f"`scale` (={scale}) must be a positive number")
    height, width = images.shape[-2:]
    size = scaled_size(height, scale), scaled_size(width, scale)
    if min(size) < 1:
        raise InputError(f"scale {scale:g} leaves less than one pixel of a {height}×{width} image")
    return interpolate(images, size=size, mode=mode, antialias=antialias)


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


def upsample_to_any(features: Tensor, height: int, width: int) -> Tensor:
    """`upsample_to` of a map that was halved, without asking for sizes: what a graph for all sizes records."""
    large = interpolate(features.flatten(0, 1), scale_factor=2, mode="bilinear", align_corners=False)
    return first_pixels(large, height, width).view(*features.shape[:3], height, width)


def first_pixels(images: Tensor, height: int, width: int) -> Tensor:
    """The first `height` × `width` pixels of […, H, W]; where there are fewer, the last row and column again.

    By index and not by slice: whether a slice is contiguous depends on the size, and a graph would be bound to that.
    """
    for axis, length in ((-2, height), (-1, width)):
        places = torch.arange(length, device=images.device).clamp(max=images.shape[axis] - 1)
        images = images.index_select(axis, places)
    return images
