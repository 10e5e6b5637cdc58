"""The working raster: the pixels a network runs on, read in parts from an image as a plan says.

Resampling goes by a grid that is fixed for the whole image: a part has the pixels that the whole would have there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.image import Image, RgbArray
from seunet.memory import own_pages
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.receptive_field import Span

CELL_PX: Final = 256
"""What cannot be read is narrowed down to squares of this size on the level's own grid."""

BAND_PX: Final = 256
"""Rows that are resampled at a time."""

READ_PX: Final = 1024
"""Rows that are read at a time, on a grid of their own so that no tile of a slide is decoded twice: what is read comes
through memory that is shared with another process, and counts in both."""

Area = tuple[Span, Span]
"""Rows and columns."""


class Gap(NamedTuple):
    """A part of the working raster that could not be read, and why."""

    rows: Span
    columns: Span
    reason: str


class RasterPart(NamedTuple):
    """Pixels, white where there is a gap."""

    pixels: RgbArray
    gaps: tuple[Gap, ...]


class WorkingRaster:
    """`image` as `plan` wants it."""

    def __init__(self, image: Image, plan: ReadingPlan) -> None:
        self._image, self._plan = image, plan
        level = image.levels[plan.level]
        self._level_size = level.height_px, level.width_px
        self.size = resampled_length(level.height_px, plan.resample), resampled_length(level.width_px, plan.resample)
        """Height and width."""

    def read(self, rows: Span, columns: Span) -> RasterPart:
        """A part of the raster; the same pixels however the raster is cut into parts."""
        if self._plan.resample == 1:
            return self._read_level(rows, columns)
        pixels = own_pages((rows.length, columns.length, 3), np.uint8)
        gaps: list[Gap] = []
        for start in range(rows.start, rows.stop, BAND_PX):
            band = Span(start, min(start + BAND_PX, rows.stop))
            part = self._resampled(band, columns)
            pixels[band.within(rows)] = part.pixels
            gaps.extend(part.gaps)
        return RasterPart(pixels, tuple(gaps))

    def _resampled(self, rows: Span, columns: Span) -> RasterPart:
        ratio, (height, width) = self._plan.resample, self._level_size
        held = seen_by_resampling(rows, height, ratio), seen_by_resampling(columns, width, ratio)
        source = self._read_level(*held)
        taps = resampling_taps(rows, height, ratio), resampling_taps(columns, width, ratio)
        gaps = (
            Gap(self._touched(gap.rows, rows), self._touched(gap.columns, columns), gap.reason) for gap in source.gaps
        )
        return RasterPart(
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

    def _read_level(self, rows: Span, columns: Span) -> RasterPart:
        """A part of the level; if it cannot be read, the cells of it that can.

        Whole cells are read: what is a gap does not depend on the part that is wanted.
        """
        held = _in_cells(rows, self._level_size[0]), _in_cells(columns, self._level_size[1])
        pixels = own_pages((held[0].length, held[1].length, 3), np.uint8)
        gaps: list[Gap] = []
        for band in _bands(held[0]):
            try:
                pixels[band.within(held[0])] = self._cell(band, held[1])
            except RegionError:
                pixels[band.within(held[0])], missing = self._cell_by_cell(band, held[1])
                gaps += missing
        wanted = pixels[rows.within(held[0]), columns.within(held[1])]
        return RasterPart(wanted, gaps_within(gaps, rows, columns))

    def _cell_by_cell(self, rows: Span, columns: Span) -> tuple[RgbArray, list[Gap]]:
        pixels = np.full((rows.length, columns.length, 3), 255, dtype=np.uint8)
        gaps = []
        for down in _cells(rows):
            for across in _cells(columns):
                try:
                    pixels[down.within(rows), across.within(columns)] = self._cell(down, across)
                except RegionError as error:
                    gaps.append(Gap(down, across, str(error)))
        return pixels, gaps

    def _cell(self, rows: Span, columns: Span) -> RgbArray:
        return self._image.read(self._plan.level, columns.start, rows.start, columns.length, rows.length)


def gaps_within(gaps: Iterable[Gap], rows: Span, columns: Span) -> tuple[Gap, ...]:
    """What of the gaps lies in these rows and columns."""
    cut = (Gap(gap.rows.common(rows), gap.columns.common(columns), gap.reason) for gap in gaps)
    return tuple(gap for gap in cut if gap.rows.length and gap.columns.length)


def _in_cells(span: Span, length: int) -> Span:
    """The cells that `span` touches."""
    return Span(span.start // CELL_PX * CELL_PX, min(-(-span.stop // CELL_PX) * CELL_PX, length))


def _cells(span: Span) -> list[Span]:
    """`span`, which begins with a cell, cut into cells."""
    return [Span(start, min(start + CELL_PX, span.stop)) for start in range(span.start, span.stop, CELL_PX)]


def _bands(span: Span) -> list[Span]:
    """`span` cut at multiples of `READ_PX`."""
    cuts = range(span.start // READ_PX * READ_PX + READ_PX, span.stop, READ_PX)
    edges = [span.start, *cuts, span.stop]
    return [Span(start, stop) for start, stop in pairwise(edges)]


class Taps(NamedTuple):
    """Which source pixels make up each new one, and how much of each: [new pixels, taps]."""

    places: NDArray[np.int64]
    weights: NDArray[np.float32]


def resampled_length(length: int, ratio: float) -> int:
    """How many pixels `length` become: round(length · ratio), at least one."""
    return max(1, round(length * ratio))


def resampling_taps(span: Span, length: int, ratio: float, antialias: bool = True) -> Taps:
    """New pixel i has its centre at (i + ½)/ratio of a source of this length.

    It is a mean with weights that fall linearly to 0 at one source pixel from the centre, or at 1/ratio where there
    are fewer new pixels than old ones: bilinear interpolation, with all source pixels counted when shrinking (but
    without `antialias`, as the paper's evaluation has it).
    """
    support = max(1.0, 1 / ratio) if antialias else 1.0
    centres = (np.arange(span.start, span.stop) + 0.5) / ratio - 0.5
    first = np.ceil(centres - support).astype(np.int64)
    places = first[:, None] + np.arange(math.floor(2 * support) + 1)
    weights = np.maximum(0.0, 1 - np.abs(places - centres[:, None]) / support)
    # Beyond the edge there is nothing; a new pixel that lies wholly beyond it is that of the edge.
    weights[(places < 0) | (places >= length)] = 0.0
    places = places.clip(0, length - 1)
    lost = weights.sum(1) == 0
    weights[lost, 0] = 1.0
    return Taps(places, (weights / weights.sum(1, keepdims=True)).astype(np.float32))


def seen_by_resampling(span: Span, length: int, ratio: float) -> Span:
    """The source pixels that `span` of the new ones is made of."""
    ends = resampling_taps(Span(span.start, span.start + 1), length, ratio).places
    others = resampling_taps(Span(span.stop - 1, span.stop), length, ratio).places
    return Span(int(ends.min()), int(others.max()) + 1)


def resample(pixels: NDArray[np.uint8], held: tuple[Span, Span], rows: Taps, columns: Taps) -> NDArray[np.uint8]:
    """New pixels from `pixels` [height, width, channels], which hold the part `held` (rows, columns) of the source.

    Each sum has one order, whatever the part: the result is the same to the bit.
    """
    tall = np.zeros((len(rows.places), *pixels.shape[1:]), dtype=np.float32)
    for places, weights in zip(rows.places.T, rows.weights.T, strict=True):
        tall += pixels[places - held[0].start] * weights[:, None, None]
    result = np.zeros((len(rows.places), len(columns.places), pixels.shape[2]), dtype=np.float32)
    for places, weights in zip(columns.places.T, columns.weights.T, strict=True):
        result += tall[:, places - held[1].start] * weights[None, :, None]
    return np.rint(result).clip(0, 255).astype(np.uint8)
