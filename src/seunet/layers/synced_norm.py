"""Batch normalisation over the batch of all processes (torch's own is for GPUs only)."""

from __future__ import annotations

import torch
from torch import Tensor, distributed, nn


def together() -> bool:
    """Whether other processes train with this one."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def synced_batch_norm(maps: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """w·(x − mean)/√(var + ε) + b of [B, C, H, W] with mean and variance over all processes.

    The mean is exchanged before the squares are summed: E[x²] − E[x]² would lose the digits that the gradient needs.
    """
    pixels = maps.new_full((1,), maps.numel() // maps.shape[1])
    sums = _total(torch.cat([maps.sum((0, 2, 3)), pixels]))
    count = sums[-1].detach()
    mean = sums[:-1] / count
    centred = maps - mean[:, None, None]
    variance = _total(centred.square().sum((0, 2, 3))) / count
    remember(norm, mean, variance, count)
    scale = norm.weight * torch.rsqrt(variance + norm.eps)
    return centred * scale[:, None, None] + norm.bias[:, None, None]


@torch.no_grad()
def remember(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: Tensor | int) -> None:
    """Move the running statistics of a norm towards those of a batch of `count` pixels."""
    norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
    for running, value in ((norm.running_mean, mean), (norm.running_var, variance * (count / (count - 1)))):
        running.lerp_(value.to(running), norm.momentum)  # type: ignore[union-attr, arg-type]


def _total(values: Tensor) -> Tensor:
    from torch.distributed.nn.functional import all_reduce  # autograd's: its backward is a sum as well

    return all_reduce(values)  # type: ignore[no-any-return, no-untyped-call]
