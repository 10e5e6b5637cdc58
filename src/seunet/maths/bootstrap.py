"""What another draw of images and seeds might have shown: intervals of means and of paired differences.

The images of a test set are resampled with replacement, the same draw for both sides of a difference, so that what is
hard for both cancels; the seeds of each system are resampled on their own.  Draws of n seeds vary by (n − 1)/n of what
seeds vary by: their deviations count √(n/(n − 1)) times.  Two or three seeds are few all the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Interval(NamedTuple):
    """A value, and the limits between which it stays in `level` of the draws."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> int:
        """1 above zero, −1 below it, 0 where the interval holds it: then nothing is decided."""
        return int(self.low > 0) - int(self.high < 0)


class Draws(NamedTuple):
    """Resampled images: how often each is taken, [draws, images]; the first draw takes every image once."""

    weights: FloatArray
    random: np.random.Generator


def draw_images(images: int, draws: int, random: np.random.Generator) -> Draws:
    """`draws` samples with replacement, behind the sample itself."""
    chance = np.full(images, 1 / images)
    weights = random.multinomial(images, chance, size=draws).astype(np.float64)
    return Draws(np.concatenate([np.ones((1, images)), weights]), random)


def headline_ious(matrices: NDArray[Any]) -> FloatArray:
    """The one number of a table, for each of [..., classes, classes] as `maths.confusion` counts them.

    The IoU of class 1 for two classes, else the mean over the classes that occur.
    """
    both = np.diagonal(matrices, axis1=-2, axis2=-1).astype(np.float64)
    either = matrices.sum(-1) + matrices.sum(-2) - both
    ious = np.divide(both, either, out=np.full_like(both, np.nan), where=either > 0)
    found: FloatArray = ious[..., 1] if matrices.shape[-1] == 2 else np.nanmean(ious, axis=-1)
    return found


def drawn_ious(matrices: NDArray[Any], draws: Draws) -> FloatArray:
    """[images, …, classes, classes] → [draws, …]: one confusion matrix per draw over its images, then its IoU."""
    images = matrices.shape[0]
    flat = matrices.reshape(images, -1).astype(np.float64)
    return headline_ious((draws.weights @ flat).reshape(len(draws.weights), *matrices.shape[1:]))


def over_seeds(values: FloatArray, random: np.random.Generator) -> FloatArray:
    """[draws, seeds, …] → [draws, …]: the mean over seeds, resampled in every draw but the first.

    m + √(n/(n − 1))·(m′ − m), m the mean over the n seeds and m′ that over n of them drawn with replacement.
    """
    count, seeds = values.shape[:2]
    chosen = random.integers(0, seeds, size=(count, seeds))
    chosen[0] = np.arange(seeds)
    means = values.mean(1)
    deviations = np.stack([values[draw, chosen[draw]].mean(0) for draw in range(count)]) - means
    return np.asarray(means + np.sqrt(seeds / max(seeds - 1, 1)) * deviations)


def interval(values: FloatArray, level: float = 0.95) -> Interval:
    """Of [draws]: the first is the value, the others say how it might have come out."""
    low, high = np.quantile(values[1:], [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values[0]), float(low), float(high))
