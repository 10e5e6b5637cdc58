"""From one prediction per scale to one prediction (paper section 3.4, algorithm 1), and the weights of the heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Final, NamedTuple

import torch
from torch import Tensor

from seunet.errors import InputError, unknown_name


def confidence(probabilities: Tensor) -> Tensor:
    """δ = p_max − p_second: [B, scales, classes, H, W] → [B, scales, H, W].

    Two equal largest probabilities have distance 0.  With a single class there is no second: δ = p.
    """
    if probabilities.shape[2] == 1:
        return probabilities[:, :, 0]
    # One pass per class: `topk` along a strided axis takes three times as long.
    first, second, *others = probabilities.unbind(2)
    largest, runner_up = torch.maximum(first, second), torch.minimum(first, second)
    for other in others:
        runner_up = torch.maximum(runner_up, torch.minimum(largest, other))
        largest = torch.maximum(largest, other)
    return largest - runner_up


def softmax_in_order(values: Tensor, dim: int) -> Tensor:
    """`values.softmax(dim)`, summed term by term along `dim`.

    Each element has one way of being computed, wherever it lies: an image cut into tiles has the bits of the whole.
    `softmax` and `sum` treat the rest that fills no vector by other code, which rounds otherwise.
    """
    terms = values.unbind(dim)
    largest = reduce(torch.maximum, terms)
    raised = [torch.exp(term - largest) for term in terms]
    total = reduce(add, raised)
    return torch.stack([term / total for term in raised], dim)


def _mean(probabilities: Tensor) -> Tensor:
    return reduce(add, probabilities.unbind(1)) / probabilities.shape[1]


def winning_scale(probabilities: Tensor) -> Tensor:
    """k* = argmax_k δ_k at each pixel, the finest of equals: [B, scales, classes, H, W] → [B, H, W]."""
    return first_largest(confidence(probabilities), dim=1)


def first_largest(values: Tensor, dim: int) -> Tensor:
    """Where along `dim` the largest value is, the first of equals: int64 without that axis.

    `argmax` leaves the choice among equals to the implementation, and along a strided axis it is many times slower.
    """
    best, *others = values.unbind(dim)
    place = torch.zeros_like(best, dtype=torch.int64)
    for number, other in enumerate(others, start=1):
        place.masked_fill_(other > best, number)
        best = torch.maximum(best, other)
    return place


def _p_dist(probabilities: Tensor) -> Tensor:
    winner = winning_scale(probabilities)[:, None, None].expand(-1, 1, probabilities.shape[2], -1, -1)
    return probabilities.gather(1, winner)[:, 0]


def _p_ens(probabilities: Tensor) -> Tensor:
    return _weighted(probabilities, confidence(probabilities))


class Calibration(NamedTuple):
    """What was learnt of the heads on images they were not trained on; γ numbers each, and one."""

    temperatures: tuple[float, ...]
    """T_k: by how much the logits of head k are too large; above 1 it is surer than it is right."""
    prior: tuple[float, ...]
    """log π_k, up to a constant: how much head k is worth before it has said anything."""
    sharpness: float
    """β: how much confidence counts; 0 is a fixed mean, 1 is that of P_Ens, ∞ that of P_Dist."""


def calibrated(probabilities: Tensor, calibration: Calibration) -> Tensor:
    """Σ_k w_k q_k with q_k ∝ p_k^(1/T_k) and w = softmax(log π + β δ(q)): [B, γ, classes, H, W] → [B, classes, H, W].

    T = 1, π uniform: β = 0 is `mean`, β = 1 is `p_ens`, β → ∞ is `p_dist`.
    """
    heads = probabilities.shape[1]
    if not len(calibration.temperatures) == len(calibration.prior) == heads:
        raise InputError(f"a calibration of {len(calibration.prior)} heads does not fit predictions of {heads}")
    temperatures = probabilities.new_tensor(calibration.temperatures)[:, None, None, None]
    logits = probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log() / temperatures
    cooled = softmax_in_order(logits, dim=2)
    prior = probabilities.new_tensor(calibration.prior)[:, None, None]
    return _weighted(cooled, prior + calibration.sharpness * confidence(cooled))


def _weighted(probabilities: Tensor, scores: Tensor) -> Tensor:
    """Σ_k softmax(scores)_k p_k at each pixel."""
    weights = softmax_in_order(scores, dim=1)
    terms = zip(weights.unbind(1), probabilities.unbind(1), strict=True)
    return reduce(add, [weight[:, None] * term for weight, term in terms])


_FUSIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"mean": _mean, "p_dist": _p_dist, "p_ens": _p_ens}
FUSIONS: Final = tuple(_FUSIONS)
CALIBRATED: Final = "calibrated"
"""The name of a fusion by a `Calibration`, which is the model's own."""

Fusion = str | Calibration


def fuse(probabilities: Tensor, strategy: Fusion = "p_ens") -> Tensor:
    """[B, scales, classes, H, W] → [B, classes, H, W], a probability distribution again.

    - `mean`: (1/γ) Σ_k ŷ_k
    - `p_dist`: ŷ_k of the most confident scale k at each pixel (the finest of equals)
    - `p_ens`: Σ_k w_k ŷ_k with w = softmax(δ), δ_k = p_max − p_second of scale k
    - a `Calibration`: `calibrated`
    """
    if isinstance(strategy, str) and strategy not in _FUSIONS:
        raise unknown_name("fusion", strategy, FUSIONS)
    if probabilities.ndim != 5:
        raise InputError(
            f"`probabilities` of shape {list(probabilities.shape)} must be [batch, scales, classes, height, width]"
        )
    if isinstance(strategy, str) and probabilities.shape[1] == 1:
        return probabilities[:, 0]  # what each of them gives of one
    return _FUSIONS[strategy](probabilities) if isinstance(strategy, str) else calibrated(probabilities, strategy)


def predicted_classes(probabilities: Tensor, fusions: Sequence[Fusion] = FUSIONS) -> Tensor:
    """The class each head and then each fusion says: [B, scales, classes, H, W] → [scales + fusions, B, H, W].

    Of equally probable classes the first, of equally confident heads the finest.
    """
    heads = first_largest(probabilities, dim=2).unbind(1)
    return torch.stack([*heads, *(first_largest(fuse(probabilities, name), dim=1) for name in fusions)])


def head_weights(eta: Tensor) -> Tensor:
    """η̃ = (softmax(η) + 1/γ) / 2 (paper eq. 9): positive, sum 1, none below 1/2γ."""
    return (torch.softmax(eta, dim=0) + 1 / len(eta)) / 2
