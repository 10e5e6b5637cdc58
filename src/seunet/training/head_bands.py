"""Which magnifications belong to which head, where each head is shown its own.

Heads differ by their σ alone.  An image s times as large seen with σ s times as large is the same picture to the same
weights (paper eq. 4), so a head learns most from what fits its filters, and the others learn it at the same time.
"""

from __future__ import annotations

import math
from itertools import pairwise

from seunet.errors import InputError
from seunet.models.config import GaussianConfig
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.config import TrainingConfig


def head_scales(model: ScaleUNet, first: float) -> list[float]:
    """The magnification that fits each head: `first` · ratio^k, with the ratio of the σ of neighbouring heads."""
    config = model.config
    if not isinstance(config, GaussianConfig) or config.schedule != "geometric" or model.heads == 1:
        raise InputError(
            "`recipe.first_head_scale` is for heads whose σ rise by one ratio: a seunet with `model.preset` geometric"
        )
    return [first * config.sigma_ratio**number for number in range(model.heads)]


def fitting_head(scales: list[float]) -> int | None:
    """The head, counted from 1, that fits images as they are to half a step; None if none does.

    >>> fitting_head([0.7, 1.0, 1.4]), fitting_head([1.0]), fitting_head([1.5, 2.1])
    (2, 1, None)
    """
    nearest = min(scales, key=lambda scale: abs(math.log2(scale)))
    half_a_step = abs(math.log2(scales[1] / scales[0])) / 2 if len(scales) > 1 else 0.25
    return scales.index(nearest) + 1 if abs(math.log2(nearest)) <= half_a_step else None


def scale_bands(scales: list[float], scale_range: tuple[float, float] | None) -> list[tuple[float, float]]:
    """The part of `scale_range` nearest to each of `scales` in octaves; the first and the last reach to its ends."""
    if scale_range is None:
        raise InputError("`recipe.first_head_scale` needs magnifications to show: set `data.augmentation.scale_range`")
    low, high = scale_range
    inner = [math.sqrt(one * next_one) for one, next_one in pairwise(scales)]
    edges = [low, *inner, high]
    if sorted(edges) != edges:
        raise InputError(
            f"`data.augmentation.scale_range` (={low:g}, {high:g}) does not reach all heads, which fit "
            f"{', '.join(f'{scale:.3g}' for scale in scales)}; widen it or change `recipe.first_head_scale`"
        )
    return list(pairwise(edges))


def head_bands(config: TrainingConfig, model: ScaleUNet) -> list[tuple[float, float]]:
    """The magnifications of each head, where each is shown windows of its own; refuses what does not fit the model."""
    if config.recipe.frozen_norms and config.start is None:
        raise InputError("`recipe.frozen_norms` needs statistics to leave as they are: set `start` to a trained model")
    weights = config.recipe.class_weights
    if weights is not None and (len(weights) != model.classes or min(weights) <= 0):
        raise InputError(
            f"`recipe.class_weights` (={list(weights)}) must be {model.classes} positive numbers, one per class, or "
            "null"
        )
    first = config.recipe.first_head_scale
    if config.recipe.foreign_share and first is None:
        raise InputError(
            "`recipe.foreign_share` is of windows that are not a head's own: set `recipe.first_head_scale`"
        )
    if config.recipe.unsure_octaves is not None and not config.recipe.foreign_share:
        raise InputError(
            "`recipe.unsure_octaves` is about windows that are not a head's own: set `recipe.foreign_share`"
        )
    return [] if first is None else scale_bands(head_scales(model, first), config.data.augmentation.scale_range)
