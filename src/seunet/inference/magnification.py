"""At which pixels a model is run: the pyramid level that is read, by how much it is resampled, and σ × what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seunet.errors import InputError
from seunet.inference.image import Level, Mpp
from seunet.limits import MPP_RANGE

DEFAULT_RANGE: Final = (0.5, 2.0)
"""Where the filters are scaled rather than the pixels, for a model whose card does not say."""

NO_RANGE: Final = (1.0, 1.0)
"""For models that have no σ."""

MAX_ENLARGEMENT: Final = 4.0
"""Along each side.  Beyond it the work grows and nothing is seen that was not there."""

_SAME: Final = 1e-3
"""Relative: scales closer than this are one."""


@dataclass(frozen=True)
class Plan:
    """What is read and how the network is set.  All numbers count along the side of a pixel."""

    level: int
    """The pyramid level that is read."""
    resample: float
    """Working pixels in one of that level; 1 leaves the pixels alone."""
    factor: float
    """What every σ is multiplied by."""
    relative_scale: float | None
    """How many times as large as in training structures are in level 0; None if that is not known."""
    downsample: float
    """Level-0 pixels in a working pixel."""
    reason: str
    """A sentence."""


def plan(
    slide_mpp: Mpp | None,
    levels: Sequence[Level],
    model_mpp: float | None,
    filter_range: tuple[float, float] = DEFAULT_RANGE,
) -> Plan:
    """How a slide of this resolution is given to a model trained at `model_mpp`.

    Within `filter_range` the pixels of level 0 are left alone and the filters are scaled.  Outside it, the level whose
    own scale lies in the range and nearest to 1 is read as it is; where there is none, the next finer level is
    resampled to the training scale.  Any resolution is taken as it is, never rounded to that of a level.
    """
    low, high = filter_range
    if not (math.isfinite(low) and math.isfinite(high) and 0 < low <= 1 <= high):
        raise InputError(f"`filter_range` (={filter_range!r}) must be two numbers with 1 between them, e.g. (0.5, 2)")
    if slide_mpp is None or model_mpp is None:
        whose = "the image's" if slide_mpp is None else "the model's"
        reason = f"{whose} mpp is not known: the pixels are taken as they are and the heads carry the scale"
        return Plan(0, 1.0, 1.0, None, 1.0, reason)
    for value in slide_mpp[:2]:
        checked_mpp(value)
    mpp = slide_mpp.mean
    scale = checked_mpp(model_mpp) / mpp
    known = f"{mpp:.4g} µm/px where the model was trained at {model_mpp:.4g}"
    if _within(scale, low, high):
        if math.isclose(scale, 1, rel_tol=_SAME):
            return Plan(0, 1.0, 1.0, scale, 1.0, f"{known}: the pixels and the filters are taken as they are")
        return Plan(0, 1.0, scale, scale, 1.0, f"{known}: the pixels are left alone, every σ × {scale:.4g}")
    if scale > high:
        return _coarser(scale, levels, (low, high), known)
    return _enlarged(scale, (low, high), known)


def checked_mpp(mpp: float) -> float:
    """`mpp`, if a light microscope can give it."""
    lowest, highest = MPP_RANGE
    if isinstance(mpp, bool) or not isinstance(mpp, int | float) or not lowest <= mpp <= highest:
        raise InputError(f"mpp {mpp!r}: must be a number of µm per pixel from {lowest:g} to {highest:g}")
    return float(mpp)


def _coarser(scale: float, levels: Sequence[Level], bounds: tuple[float, float], known: str) -> Plan:
    """Level 0 shows more than the model has seen: a coarser level, or one shrunk to the training scale."""
    own = [scale / level.downsample for level in levels]
    fitting = [number for number, found in enumerate(own) if _within(found, *bounds)]
    if fitting:
        chosen = min(fitting, key=lambda number: abs(math.log(own[number])))
        factor = 1.0 if math.isclose(own[chosen], 1, rel_tol=_SAME) else own[chosen]
        how = f"level {chosen} (1/{levels[chosen].downsample:.4g}) is read as it is, every σ × {factor:.4g}"
        return Plan(chosen, 1.0, factor, scale, levels[chosen].downsample, f"{known}: {how}")
    chosen = min((number for number, found in enumerate(own) if found > 1), key=lambda number: own[number])
    resample = 1 / own[chosen]
    how = f"level {chosen} (1/{levels[chosen].downsample:.4g}) is shrunk × {resample:.4g} to the training scale"
    return Plan(chosen, resample, 1.0, scale, levels[chosen].downsample / resample, f"{known}: {how}")


def _enlarged(scale: float, bounds: tuple[float, float], known: str) -> Plan:
    """Level 0 shows less than the model has seen: enlarged to the training scale, or as far as is sensible."""
    resample = min(1 / scale, MAX_ENLARGEMENT)
    reached, factor = scale * resample, 1.0
    how = f"level 0 is enlarged × {resample:.4g} to the training scale"
    if _within(reached, *bounds) and not math.isclose(reached, 1, rel_tol=_SAME):
        factor, how = reached, f"level 0 is enlarged × {resample:.4g}, every σ × {reached:.4g}"
    elif not math.isclose(reached, 1, rel_tol=_SAME):
        how = f"level 0 is enlarged × {resample:.4g} and structures are still × {reached:.2g}: expect little"
    return Plan(0, resample, factor, scale, 1 / resample, f"{known}: {how}")


def _within(scale: float, low: float, high: float) -> bool:
    return low * (1 - _SAME) <= scale <= high * (1 + _SAME)
