"""Batch normalisation with the statistics of the batch, followed by ReLU, as one differentiable function on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seunet.kernels import jobs as channels
from seunet.kernels import threads as team
from seunet.kernels.derivatives import once_differentiable


def _run(
    maps: Tensor,
    table: Tensor,
    result: Tensor | None = None,
    gradient: Tensor | None = None,
    target: Tensor | None = None,
) -> None:
    batch, count, height, width = maps.shape
    job = {
        channels.CHANNELS_COUNT: count,
        channels.CHANNELS_BATCH: batch,
        channels.CHANNELS_PIXELS: height * width,
        channels.CHANNELS_BACKWARD: gradient is not None,
        channels.CHANNELS_MAPS: maps.data_ptr(),
        channels.CHANNELS_RESULT: 0 if result is None else result.data_ptr(),
        channels.CHANNELS_GRADIENT: 0 if gradient is None else gradient.data_ptr(),
        channels.CHANNELS_TARGET: 0 if target is None else target.data_ptr(),
        channels.CHANNELS_TABLE: table.data_ptr(),
    }
    function = team.worker("batch_norm", maps.dtype)
    team.run_job(function, job, channels.CHANNELS_LENGTH, min(team.team_size(), count))


class NormRelu(torch.autograd.Function):
    """max(w·(x − mean)/√(var + ε) + b, 0) of [B, C, H, W] over batch and pixels; returns mean and variance [C] too."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
        maps = maps.contiguous()
        table = maps.new_zeros(channels.ROWS, maps.shape[1], dtype=torch.float64)
        table[channels.ROW_WEIGHT], table[channels.ROW_BIAS] = weight.detach(), bias.detach()
        table[channels.ROW_EPSILON] = epsilon
        result = torch.empty_like(maps)
        _run(maps, table, result)
        ctx.save_for_backward(maps, table)
        mean, variance = table[channels.ROW_MEAN].to(maps.dtype), table[channels.ROW_VARIANCE].to(maps.dtype)
        ctx.mark_non_differentiable(mean, variance)
        return result, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        maps, table = ctx.saved_tensors
        target, found = torch.empty_like(maps), table.clone()
        _run(maps, found, None, gradient.contiguous(), target)
        weight, bias = found[channels.ROW_WEIGHT_GRADIENT], found[channels.ROW_BIAS_GRADIENT]
        return target, weight.to(maps.dtype), bias.to(maps.dtype), None
