"""Maps made half or twice as large between two levels of a network, and the choice of how that is computed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from seunet.kernels.dispatch import runs_in_whole_vectors
from seunet.maths.rescaling import first_pixels, upsample_to, upsample_to_any
from seunet.recording import is_recording


def pooling_window(features: Tensor) -> tuple[int, int]:
    """2×2, or less where the map is less: halving never goes below one pixel."""
    return min(2, features.shape[-2]), min(2, features.shape[-1])


def max_pool(features: Tensor) -> Tensor:
    """The largest of each 2×2 pixels: [B, scales, C, H, W] → [B, scales, C, H // 2, W // 2], never below one pixel."""
    if is_recording():
        return pooled_at_any_size(features, max_pool2d)
    window = pooling_window(features)
    if window == (2, 2) and runs_in_whole_vectors(features):
        from seunet.kernels.pooling import MaxPool

        return MaxPool.apply(features)  # type: ignore[no-any-return, no-untyped-call]
    pooled = max_pool2d(features.flatten(0, 1), window)
    return pooled.view(*features.shape[:3], *pooled.shape[2:])


def pooled_at_any_size(features: Tensor, pool: Callable[..., Tensor]) -> Tensor:
    """Pooling by 2×2 without asking how large the map is: a pair that is not whole is dropped, but for a single one."""
    height, width = features.shape[-2:]
    pooled = pool(features.flatten(0, 1), 2, ceil_mode=True)
    pooled = first_pixels(pooled, _halved(height), _halved(width))
    return pooled.view(*features.shape[:3], *pooled.shape[2:])


def _halved(length: int | Tensor) -> int:
    """⌊length / 2⌋, at least 1, as it is recorded; a length is a tensor to `torch.jit.trace`."""
    if isinstance(length, Tensor):
        return torch.clamp(length // 2, min=1)  # type: ignore[return-value]
    return torch.sym_max(length // 2, 1)  # type: ignore[no-any-return, no-untyped-call]


def join_upsampled(skip: Tensor, rising: Tensor) -> Tensor:
    """The channels of `skip`, then those of `rising` upsampled to its size (`maths.rescaling.upsample_to`)."""
    if is_recording():
        return torch.cat([skip, upsample_to_any(rising, *skip.shape[3:])], dim=2)
    if skip.shape[3:] != rising.shape[3:] and runs_in_whole_vectors(skip) and skip.dtype == rising.dtype:
        from seunet.kernels.pooling import JoinUpsampled

        return JoinUpsampled.apply(skip, rising)  # type: ignore[no-any-return, no-untyped-call]
    return torch.cat([skip, upsample_to(rising, *skip.shape[3:])], dim=2)


def upsampled(rising: Tensor, height: int, width: int) -> Tensor:
    """`rising` upsampled to so many rows and columns: what `join_upsampled` puts behind the other channels."""
    if rising.shape[3:] != (height, width) and runs_in_whole_vectors(rising) and not torch.is_grad_enabled():
        from seunet.kernels.pooling import upsample

        return upsample(rising, height, width)
    return upsample_to(rising, height, width)
