"""A large image at a glance: a small picture of it, averaged, and where on it there is tissue; in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.image import Image, Level, RgbArray

BLOCK_PX = 1024
UNREADABLE = 128
"""Grey for parts that cannot be read: no background, so that nobody takes them for glass and skips them unseen."""

SMALL_PX: Final = 4_000_000
"""Images of fewer pixels are looked at whole."""

CELL_PX: Final = 64
"""Tissue or none is decided for squares of level 0 of this side."""

PIXEL_PX: Final = 16
"""… from means over squares of about this side: a cell is tissue if one of them is."""

ABSORBANCE: Final = 0.05
"""−ln(value / white) of the darkest channel.  Pale eosin has 0.07 and more; white glass varies by 0.02."""

WHITE_RANGE: Final = (225, 255)
"""Glass is at least this bright: a picture full of tissue has no white of its own to compare with."""

_BAND: Final = 16
"""Rows of means that are read at a time."""


def thumbnail(image: Image, longest_px: int) -> RgbArray:
    """The whole of `image` with its longer side at most `longest_px`, each pixel the mean of the area it covers.

    Made from the coarsest level that is large enough, block by block; an image that is small enough comes as it is.
    """
    number = best_level(image.levels, longest_px)
    level = image.levels[number]
    shrink = max(1.0, max(level.width_px, level.height_px) / longest_px)
    height_px, width_px = max(1, round(level.height_px / shrink)), max(1, round(level.width_px / shrink))
    if shrink == 1:
        return _whole(image, number, level)
    sums = np.zeros((height_px, width_px, 3), dtype=np.float32)
    for top in range(0, level.height_px, BLOCK_PX):
        rows, down = shares(top, min(BLOCK_PX, level.height_px - top), level.height_px, height_px)
        for left in range(0, level.width_px, BLOCK_PX):
            columns, across = shares(left, min(BLOCK_PX, level.width_px - left), level.width_px, width_px)
            block = _block(image, number, left, top, across.shape[1], down.shape[1])
            # [rows, y] · [y, x, 3] · [x, columns]
            narrow = np.tensordot(down, block.astype(np.float32), axes=(1, 0))
            sums[rows, columns] += np.einsum("rxc,kx->rkc", narrow, across, optimize=True)
    return np.clip(np.rint(sums), 0, 255).astype(np.uint8)


def _whole(image: Image, number: int, level: Level) -> RgbArray:
    """A level as it is, block by block: what cannot be read costs no more than its block."""
    pixels = np.empty((level.height_px, level.width_px, 3), dtype=np.uint8)
    for top in range(0, level.height_px, BLOCK_PX):
        for left in range(0, level.width_px, BLOCK_PX):
            part = pixels[top : top + BLOCK_PX, left : left + BLOCK_PX]
            part[:] = _block(image, number, left, top, part.shape[1], part.shape[0])
    return pixels


def best_level(levels: tuple[Level, ...], longest_px: int) -> int:
    """The coarsest level that need not be enlarged; the finest if all must."""
    enough = [n for n, level in enumerate(levels) if max(level.width_px, level.height_px) >= longest_px]
    return max(enough, default=0)


def shares(start: int, count: int, size: int, small: int) -> tuple[slice, NDArray[np.float32]]:
    """Which of `small` cells over `size` pixels the pixels start … start + count touch, and by which share.

    [cells, count]: the part of a cell that a pixel covers.  Over all pixels of the line the shares of a cell sum to 1.
    """
    cell = size / small
    first, last = int(start / cell), min(small, int(np.ceil((start + count) / cell)))
    edges = np.arange(first, last + 1) * cell
    pixels = np.arange(start, start + count)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return slice(first, last), (np.clip(overlap, 0, None) / cell).astype(np.float32)


def _block(image: Image, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
    try:
        return image.read(level, x, y, width_px, height_px)
    except RegionError:
        return np.full((height_px, width_px, 3), UNREADABLE, dtype=np.uint8)


@dataclass(frozen=True)
class Tissue:
    """Cells of `CELL_PX` level-0 pixels with tissue in or beside them: [rows, columns]."""

    cells: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """Of the slide's area."""
        return float(self.cells.mean())

    def mask(self, rows: tuple[int, int], columns: tuple[int, int], downsample: float) -> NDArray[np.bool_]:
        """Whether each pixel of a raster, `downsample` level-0 pixels wide, has its centre in tissue: [rows, columns].

        `rows` and `columns` are a rectangle of the raster, each from … to.
        """
        places = [
            np.minimum(((np.arange(*span) + 0.5) * downsample / CELL_PX).astype(np.int64), count - 1)
            for span, count in zip((rows, columns), self.cells.shape, strict=True)
        ]
        return self.cells[np.ix_(*places)]


def find_tissue(image: Image) -> Tissue | None:
    """The tissue of an image; None if it is so small that it is not worth a look."""
    level0 = image.levels[0]
    if level0.width_px * level0.height_px <= SMALL_PX:
        return None
    darkest, counts = _darkest_means(image)
    white = _white(counts)
    absorbance = np.log(white / np.maximum(darkest.astype(np.float64), 1)).max(2)
    found = (absorbance > ABSORBANCE).astype(np.uint8)
    return Tissue(cv2.dilate(found, np.ones((3, 3), np.uint8)).astype(bool))


def _darkest_means(image: Image) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The darkest mean of each cell and channel [rows, columns, 3], and the histograms of all means [3, 256]."""
    level0 = image.levels[0]
    number = max(
        (number for number, level in enumerate(image.levels) if level.downsample <= PIXEL_PX * 1.01),
        key=lambda number: image.levels[number].downsample,
    )
    level = image.levels[number]
    block = max(1, int(PIXEL_PX / level.downsample))
    shape = -(-level0.height_px // CELL_PX), -(-level0.width_px // CELL_PX)
    darkest = np.full((*shape, 3), 255, dtype=np.uint8)
    counts = np.zeros((3, 256), dtype=np.int64)
    size_px = level.downsample * block
    columns = _cells(np.arange(-(-level.width_px // block)), size_px, shape[1])
    for top in range(0, level.height_px, block * _BAND):
        height = min(block * _BAND, level.height_px - top)
        rows = _cells(top // block + np.arange(-(-height // block)), size_px, shape[0])
        try:
            means = _block_means(image.read(number, 0, top, level.width_px, height), block)
        except RegionError:
            # What cannot be read is found, and listed, when it is to be analysed.
            darkest[rows.min() : rows.max() + 1] = 0
            continue
        for channel in range(3):
            counts[channel] += np.bincount(means[..., channel].ravel(), minlength=256)
            np.minimum.at(darkest[..., channel], np.ix_(rows, columns), means[..., channel])
    return darkest, counts


def _cells(numbers: NDArray[np.int64], size_px: float, count: int) -> NDArray[np.int64]:
    """The cell of each mean, by its centre."""
    return np.minimum(((numbers + 0.5) * size_px / CELL_PX).astype(np.int64), count - 1)


def _block_means(pixels: NDArray[np.uint8], block: int) -> NDArray[np.uint8]:
    """Means over squares; a rest at the right and the bottom counts as a square."""
    if block == 1:
        return pixels
    height, width = (-(-length // block) * block for length in pixels.shape[:2])
    padded = np.pad(pixels, ((0, height - pixels.shape[0]), (0, width - pixels.shape[1]), (0, 0)), mode="edge")
    means = cv2.resize(padded, (width // block, height // block), interpolation=cv2.INTER_AREA)
    return means.astype(np.uint8, copy=False)


def _white(counts: NDArray[np.int64]) -> float:
    """The brightness of the glass: what one in a hundred means exceeds, in the brightest channel."""
    below = counts.cumsum(1)
    brightest = max(int(np.searchsorted(row, 0.99 * row[-1])) for row in below)
    return float(np.clip(brightest, *WHITE_RANGE))
