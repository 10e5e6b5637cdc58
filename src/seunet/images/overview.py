"""A small picture of a large image, averaged, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.image import Image, Level, RgbArray

BLOCK_PX = 1024
UNREADABLE = 128
"""Grey for parts that cannot be read: no background, so that nobody takes them for glass and skips them unseen."""


def thumbnail(image: Image, longest_px: int) -> RgbArray:
    """The whole of `image` with its longer side at most `longest_px`, each pixel the mean of the area it covers.

    Made from the coarsest level that is large enough, block by block; an image that is small enough comes as it is.
    """
    number = best_level(image.levels, longest_px)
    level = image.levels[number]
    shrink = max(1.0, max(level.width_px, level.height_px) / longest_px)
    height_px, width_px = max(1, round(level.height_px / shrink)), max(1, round(level.width_px / shrink))
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
