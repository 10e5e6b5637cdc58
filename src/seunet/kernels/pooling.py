"""Max pooling by 2 and bilinear upsampling by 2 as differentiable functions of [B, scales, C, H, W] on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seunet.kernels import jobs as planes
from seunet.kernels import threads as team
from seunet.kernels.derivatives import once_differentiable
from seunet.kernels.jobs import VECTOR_BYTES, round_up, scratch_address


def _run(
    kind: int, gradient: bool, small: Tensor, large: Tensor, result: Tensor, group: int, large_group: int, at: int = 0
) -> None:
    """Run over the planes of `small`; `result` is the one of the two that is written, or a map of its size.

    The planes of `large` are `group` of every `large_group`, from the plane `at`.
    """
    count = small.shape[0] * small.shape[1] * small.shape[2]
    if count == 0:
        return
    workers, dtype = min(team.team_size(), count), small.dtype
    floats = 6 * round_up(max(large.shape[4], 2 * small.shape[4]) + 4, 4 * VECTOR_BYTES // dtype.itemsize)
    skipped = at * large.shape[3] * large.shape[4] * dtype.itemsize
    of_large = gradient == (kind == planes.POOL)
    job = {
        planes.PLANES_COUNT: count,
        planes.PLANES_KIND: kind,
        planes.PLANES_SMALL: small.data_ptr(),
        planes.PLANES_LARGE: large.data_ptr() + skipped,
        planes.PLANES_RESULT: result.data_ptr() + (skipped if of_large else 0),
        planes.PLANES_SMALL_HEIGHT: small.shape[3],
        planes.PLANES_SMALL_WIDTH: small.shape[4],
        planes.PLANES_LARGE_HEIGHT: large.shape[3],
        planes.PLANES_LARGE_WIDTH: large.shape[4],
        planes.PLANES_GROUP: group,
        planes.PLANES_LARGE_GROUP: large_group,
        planes.PLANES_SCRATCH: scratch_address(workers * floats * dtype.itemsize),
        planes.PLANES_SCRATCH_FLOATS: floats,
    }
    team.run_job(team.worker("pooling", dtype, gradient), job, planes.PLANES_LENGTH, workers)


class MaxPool(torch.autograd.Function):
    """The largest of each 2×2 pixels; an odd last row or column is left out.  Height and width of 2 at least."""

    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        features = features.contiguous()
        ctx.save_for_backward(features)
        *leading, height, width = features.shape
        result = features.new_empty(*leading, height // 2, width // 2)
        _run(planes.POOL, False, result, features, result, 1, 1)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        result = torch.empty_like(features)
        _run(planes.POOL, True, gradient.contiguous(), features, result, 1, 1)
        return result


def upsample(rising: Tensor, height: int, width: int) -> Tensor:
    """[B, scales, C, h, w] → [B, scales, C, height, width]; no gradient."""
    rising = rising.contiguous()
    result = rising.new_empty(*rising.shape[:3], height, width)
    _run(planes.UPSAMPLE, False, rising, result, result, 1, 1)
    return result


class JoinUpsampled(torch.autograd.Function):
    """[skip, rising upsampled to the size of skip], one after the other along the channels, written once."""

    @staticmethod
    def forward(ctx: Any, skip: Tensor, rising: Tensor) -> Tensor:
        batch, scales, channels, height, width = skip.shape
        more = rising.shape[2]
        result = skip.new_empty(batch, scales, channels + more, height, width)
        result[:, :, :channels] = skip
        _run(planes.UPSAMPLE, False, rising.contiguous(), result, result, more, channels + more, at=channels)
        ctx.channels, ctx.rising_shape = channels, rising.shape
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        gradient = gradient.contiguous()
        rising, more = gradient.new_empty(ctx.rising_shape), ctx.rising_shape[2]
        _run(planes.UPSAMPLE, True, rising, gradient, rising, more, ctx.channels + more, at=ctx.channels)
        return gradient[:, :, : ctx.channels], rising
