"""At which pixels a network is run on an image of known scale: which level, resampled by how much, σ × what.

One function for slides and for evaluations: what is measured is what users get.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from seunet.errors import InputError

MAX_ENLARGEMENT: Final = 4.0
"""Along each side.  Beyond it the work grows and nothing is seen that was not there."""

_SAME: Final = 1e-3
"""Relative: scales closer than this are one."""


class Working(NamedTuple):
    """The working pixels.  All numbers count along the side of a pixel."""

    level: int
    """The pyramid level that is read."""
    resample: float
    """Working pixels in one of that level; 1 leaves the pixels alone."""
    factor: float
    """What every σ is multiplied by."""
    reached: float
    """How large structures are in the working pixels; the filters fit where it is `factor`."""


def working_pixels(scale: float, downsamples: Sequence[float], filter_range: tuple[float, float]) -> Working:
    """How an image whose structures are `scale` times those of the training is given to a network.

    Within `filter_range` the pixels of level 0 are left alone and the filters are scaled.  Outside it, the level whose
    own scale lies in the range and nearest to 1 is read as it is; where there is none, the next finer level is
    resampled to the training scale.
    """
    low, high = filter_range
    if not (math.isfinite(low) and math.isfinite(high) and 0 < low <= 1 <= high):
        raise InputError(f"`filter_range` (={filter_range!r}) must be two numbers with 1 between them, e.g. (0.5, 2)")
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"`scale` (={scale!r}) must be a positive number")
    if _within(scale, low, high):
        return Working(0, 1.0, _factor(scale), scale)
    return _coarser(scale, downsamples, (low, high)) if scale > high else _enlarged(scale, (low, high))


def is_same(one: float, other: float) -> bool:
    """Whether two scales are one."""
    return math.isclose(one, other, rel_tol=_SAME)


def _coarser(scale: float, downsamples: Sequence[float], bounds: tuple[float, float]) -> Working:
    """Level 0 shows more than the model has seen: a coarser level, or one shrunk to the training scale."""
    own = [scale / downsample for downsample in downsamples]
    fitting = [number for number, found in enumerate(own) if _within(found, *bounds)]
    if fitting:
        chosen = min(fitting, key=lambda number: abs(math.log(own[number])))
        return Working(chosen, 1.0, _factor(own[chosen]), own[chosen])
    chosen = min((number for number, found in enumerate(own) if found > 1), key=lambda number: own[number])
    return Working(chosen, 1 / own[chosen], 1.0, 1.0)


def _enlarged(scale: float, bounds: tuple[float, float]) -> Working:
    """Level 0 shows less than the model has seen: enlarged to the training scale, or as far as is sensible."""
    resample = min(1 / scale, MAX_ENLARGEMENT)
    reached = scale * resample
    return Working(0, resample, _factor(reached) if _within(reached, *bounds) else 1.0, reached)


def _factor(scale: float) -> float:
    return 1.0 if is_same(scale, 1) else scale


def _within(scale: float, low: float, high: float) -> bool:
    return low * (1 - _SAME) <= scale <= high * (1 + _SAME)
