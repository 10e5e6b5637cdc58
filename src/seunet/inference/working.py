"""The working raster: the pixels a network runs on, read in parts from an image as a plan says."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from seunet.errors import RegionError
from seunet.inference.image import Image, RgbArray
from seunet.inference.magnification import Plan
from seunet.maths.resampling import resample, resampled_length, resampling_taps, seen_by_resampling
from seunet.maths.spans import Span

CELL_PX: Final = 256
"""What cannot be read is narrowed down to squares of this size on the level's own grid."""

BAND_PX: Final = 256
"""Rows that are resampled at a time."""

Area = tuple[Span, Span]
"""Rows and columns."""


class Gap(NamedTuple):
    """A part of the working raster that could not be read, and why."""

    rows: Span
    columns: Span
    reason: str


class Region(NamedTuple):
    """Pixels, white where there is a gap."""

    pixels: RgbArray
    gaps: tuple[Gap, ...]


class WorkingRaster:
    """`image` as `plan` wants it."""

    def __init__(self, image: Image, plan: Plan) -> None:
        self._image, self._plan = image, plan
        level = image.levels[plan.level]
        self._level_size = level.height_px, level.width_px
        self.size = resampled_length(level.height_px, plan.resample), resampled_length(level.width_px, plan.resample)
        """Height and width."""

    def read(self, rows: Span, columns: Span) -> Region:
        """A part of the raster; the same pixels however the raster is cut into parts."""
        if self._plan.resample == 1:
            return self._read_level(rows, columns)
        pixels = np.empty((rows.length, columns.length, 3), dtype=np.uint8)
        gaps: list[Gap] = []
        for start in range(rows.start, rows.stop, BAND_PX):
            band = Span(start, min(start + BAND_PX, rows.stop))
            part = self._resampled(band, columns)
            pixels[band.within(rows)] = part.pixels
            gaps.extend(part.gaps)
        return Region(pixels, tuple(gaps))

    def _resampled(self, rows: Span, columns: Span) -> Region:
        ratio, (height, width) = self._plan.resample, self._level_size
        held = seen_by_resampling(rows, height, ratio), seen_by_resampling(columns, width, ratio)
        source = self._read_level(*held)
        taps = resampling_taps(rows, height, ratio), resampling_taps(columns, width, ratio)
        gaps = (
            Gap(self._touched(gap.rows, rows), self._touched(gap.columns, columns), gap.reason) for gap in source.gaps
        )
        return Region(
            resample(source.pixels, held, *taps), tuple(gap for gap in gaps if gap.rows.length and gap.columns.length)
        )

    def _touched(self, span: Span, within: Span) -> Span:
        """The working pixels of `within` that a pixel of `span` of the level goes into."""
        ratio = self._plan.resample
        support = max(1.0, 1 / ratio)
        start = math.floor((span.start - support + 0.5) * ratio - 0.5)
        stop = math.ceil((span.stop - 1 + support + 0.5) * ratio - 0.5) + 1
        start = min(max(start, within.start), within.stop)
        return Span(start, max(start, min(stop, within.stop)))

    def _read_level(self, rows: Span, columns: Span) -> Region:
        """A part of the level; if it cannot be read, the cells of it that can."""
        try:
            return Region(self._cell(rows, columns), ())
        except RegionError:
            pass
        pixels = np.full((rows.length, columns.length, 3), 255, dtype=np.uint8)
        gaps = []
        for down in _cells(rows):
            for across in _cells(columns):
                try:
                    # Always the whole cell: whether it can be read does not depend on the part that is wanted.
                    whole = _cell_of(down, self._level_size[0]), _cell_of(across, self._level_size[1])
                    cell = self._cell(*whole)
                    pixels[down.within(rows), across.within(columns)] = cell[
                        down.within(whole[0]), across.within(whole[1])
                    ]
                except RegionError as error:
                    gaps.append(Gap(down, across, str(error)))
        return Region(pixels, tuple(gaps))

    def _cell(self, rows: Span, columns: Span) -> RgbArray:
        return self._image.read(self._plan.level, columns.start, rows.start, columns.length, rows.length)


def _cells(span: Span) -> list[Span]:
    """`span` cut at the multiples of `CELL_PX`."""
    edges = [span.start, *range((span.start // CELL_PX + 1) * CELL_PX, span.stop, CELL_PX), span.stop]
    return [Span(start, stop) for start, stop in pairwise(edges)]


def _cell_of(span: Span, length: int) -> Span:
    start = span.start // CELL_PX * CELL_PX
    return Span(start, min(start + CELL_PX, length))
