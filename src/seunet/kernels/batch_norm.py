"""Batch normalisation with the statistics of the batch, followed by ReLU, as one differentiable function on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import types
from torch import Tensor

from seunet.kernels import batch_norm_loops as channels
from seunet.kernels import threads as team
from seunet.kernels.derivatives import once_differentiable


@cache
def _worker(dtype: torch.dtype) -> Callable[[int], None]:
    return team.c_function(channels.make_channel_worker(types.float32 if dtype == torch.float32 else types.float64))


def _run(
    maps: Tensor, result: Tensor, table: Tensor, gradient: Tensor | None = None, target: Tensor | None = None
) -> None:
    job = np.zeros(channels.CHANNELS_LENGTH, dtype=np.intp)
    batch, count = maps.shape[:2]
    job[channels.CHANNELS_COUNT], job[channels.CHANNELS_BATCH] = count, batch
    job[channels.CHANNELS_PIXELS] = maps.shape[2] * maps.shape[3]
    job[channels.CHANNELS_BACKWARD] = gradient is not None
    job[channels.CHANNELS_MAPS], job[channels.CHANNELS_RESULT] = maps.data_ptr(), result.data_ptr()
    job[channels.CHANNELS_GRADIENT] = 0 if gradient is None else gradient.data_ptr()
    job[channels.CHANNELS_TARGET] = 0 if target is None else target.data_ptr()
    job[channels.CHANNELS_TABLE] = table.data_ptr()
    team.run(_worker(maps.dtype), job.ctypes.data, min(team.team_size(), count))


class NormRelu(torch.autograd.Function):
    """max(w·(x − mean)/√(var + ε) + b, 0) of [B, C, H, W] over batch and pixels; returns mean and variance [C] too."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
        maps = maps.contiguous()
        table = maps.new_zeros(channels.ROWS, maps.shape[1], dtype=torch.float64)
        table[channels.ROW_WEIGHT], table[channels.ROW_BIAS] = weight.detach(), bias.detach()
        table[channels.ROW_EPSILON] = epsilon
        result = torch.empty_like(maps)
        _run(maps, result, table)
        ctx.save_for_backward(maps, result, table)
        mean, variance = table[channels.ROW_MEAN].to(maps.dtype), table[channels.ROW_VARIANCE].to(maps.dtype)
        ctx.mark_non_differentiable(mean, variance)
        return result, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        maps, result, table = ctx.saved_tensors
        target, found = torch.empty_like(maps), table.clone()
        _run(maps, result, found, gradient.contiguous(), target)
        weight, bias = found[channels.ROW_WEIGHT_GRADIENT], found[channels.ROW_BIAS_GRADIENT]
        return target, weight.to(maps.dtype), bias.to(maps.dtype), None
