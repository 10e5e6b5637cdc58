"""At which magnification an image is analysed: which level is read, resampled by what, with filters of what size.

s is the size of structures in the image's finest pixels relative to the images the model learnt from:
s = model_mpp / slide_mpp, so a slide with half the µm per pixel shows everything twice as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seunet.inference.image import Level

SAME: Final = 1e-3
"""Scales this near to 1 are 1: an mpp has no more than three good digits."""

NEVER_TOLD: Final = (1.0, 1.0)
"""The range of a model that has no σ: pixels are always brought to its scale."""


@dataclass(frozen=True)
class Plan:
    """The working raster: `level`, its pixels × `resample` a side, and every σ × `factor`."""

    level: int
    resample: float
    factor: float
    relative_scale: float | None
    """s at the finest level; None where nobody knows."""
    width_px: int
    height_px: int
    scale_to_level0: float
    """Level-0 pixels along the side of a working pixel."""
    reason: str


def plan(
    slide_mpp: float | None,
    levels: Sequence[Level],
    model_mpp: float | None,
    told_range: tuple[float, float] = NEVER_TOLD,
) -> Plan:
    """How to analyse an image; any mpp, never snapped to a level.

    Unknown: the pixels as they are, and the heads of the model carry it.  Known, and s at the finest level or at a
    coarser one within `told_range`: the filters are scaled and the pixels left alone.  Else the nearest finer level is
    resampled to the scale of the training images.
    """
    if slide_mpp is None or model_mpp is None:
        missing = "the image's µm per pixel are not known" if slide_mpp is None else "the model has no scale of its own"
        return _plan(levels, 0, 1.0, 1.0, None, f"{missing}: pixels as they are, left to the heads")
    scale = model_mpp / slide_mpp
    low, high = told_range[0] * (1 - SAME), told_range[1] * (1 + SAME)
    for number, level in enumerate(levels):
        here = scale / level.downsample
        if low <= here <= high:
            factor = 1.0 if abs(here - 1) <= SAME else here
            done = "the scale of the training images" if factor == 1 else f"every σ × {factor:.4g}, pixels left alone"
            return _plan(levels, number, 1.0, factor, scale, f"{slide_mpp:.4g} µm per pixel{_at(number)}: {done}")
    # The coarsest level that need not be enlarged; the finest if all must be.
    finer = [number for number, level in enumerate(levels) if scale / level.downsample >= 1]
    number = max(finer, default=0)
    resample = levels[number].downsample / scale
    done = f"resampled × {resample:.4g} to the scale of the training images"
    return _plan(levels, number, resample, 1.0, scale, f"{slide_mpp:.4g} µm per pixel{_at(number)}: {done}")


def _at(number: int) -> str:
    return f", read at level {number}" if number else ""


def _plan(
    levels: Sequence[Level], number: int, resample: float, factor: float, scale: float | None, reason: str
) -> Plan:
    level = levels[number]
    width_px, height_px = (max(1, round(size * resample)) for size in (level.width_px, level.height_px))
    return Plan(number, resample, factor, scale, width_px, height_px, level.downsample / resample, reason)
