"""The optimiser and its schedule, as functions of the step: what has no state cannot be resumed wrongly."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import torch
from torch import nn

RISE: Final = 0.3
START_DIVISOR: Final = 25.0
END_DIVISOR: Final = 1e4
MOMENTUM: Final = (0.85, 0.95)
"""Smith's 1cycle policy with the values of `torch.optim.lr_scheduler.OneCycleLR`."""


class Pace(NamedTuple):
    """Learning rate and momentum (Adam's β₁) of a step."""

    learning_rate: float
    momentum: float


def one_cycle(step: int, total: int, peak: float) -> Pace:
    """1cycle at `step` = 0 … total − 1: up from peak/25 to peak over the first 30 %, then down to peak/250,000.

    Both ways along half a cosine; the momentum goes the other way, 0.95 → 0.85 → 0.95.
    """
    top = RISE * total - 1
    low, high = MOMENTUM
    start, end = peak / START_DIVISOR, peak / START_DIVISOR / END_DIVISOR
    if step <= top:
        share = step / top
        return Pace(_cosine(start, peak, share), _cosine(high, low, share))
    share = (step - top) / (total - 1 - top)
    return Pace(_cosine(peak, end, share), _cosine(low, high, share))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def without_decay(name: str) -> bool:
    """Whether a parameter is σ or η: shrinking their coordinates towards 0 would mean something."""
    return name == "eta" or name.endswith("sigma_position")


def make_optimizer(model: nn.Module, weight_decay: float) -> torch.optim.Adam:
    """Adam with weight decay on everything but σ and η; its rate is set before each step."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for name, parameter in named if not without_decay(name)], "weight_decay": weight_decay},
        {"params": [parameter for name, parameter in named if without_decay(name)], "weight_decay": 0.0},
    ]
    return torch.optim.Adam([group for group in groups if group["params"]], lr=0.0, fused=True)


def set_pace(optimizer: torch.optim.Optimizer, pace: Pace) -> None:
    """Use this learning rate and momentum for the next step."""
    for group in optimizer.param_groups:
        group["lr"], group["betas"] = pace.learning_rate, (pace.momentum, group["betas"][1])
