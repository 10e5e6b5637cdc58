"""How an image is cut into tiles.  The cut is free: a tile's labels do not depend on it (`streaming.py`)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.segmentation.tiled.receptive_field import Span

MAX_TILE: Final = (4096, 3072)
"""Rows and columns.  Taller than wide: what a block holds in memory grows with its width."""

LOOKED_AT_PX: Final = 3584
"""The width of a tile and the reach of the network together, at most: rows wait until the reach below them is read."""

HELD_BYTES: Final = 448 * 2**20
"""The probabilities of all heads in a tile, at most: they are held until the last head is done."""

WIDE_BYTES: Final = 2**18
"""A row of the widest map in a tile, at most, in bytes."""

MIN_TILE_PX: Final = 256


class Tile(NamedTuple):
    """A rectangle of the working raster."""

    number: int
    rows: Span
    columns: Span

    @property
    def pixels(self) -> int:
        return self.rows.length * self.columns.length


def tiles(size: tuple[int, int], tile: tuple[int, int]) -> list[Tile]:
    """Tiles of at most `tile` (rows, columns) that cover an image of this size (height, width), row by row."""
    spans = [
        [Span(start, min(start + step, length)) for start in range(0, length, step)]
        for length, step in zip(size, tile, strict=True)
    ]
    every = [(rows, columns) for rows in spans[0] for columns in spans[1]]
    return [Tile(number, rows, columns) for number, (rows, columns) in enumerate(every)]


def default_tile(predictions: int, channels: int, reach_px: int) -> tuple[int, int]:
    """Rows and columns of a tile for a network of so many heads × classes, channels in its widest map, and reach.

    Larger tiles look at less of their surroundings twice; these fit into 2 GiB at the paper's widths, and with σ × 2
    (benchmarks/measure/network/tiles.py).
    """
    width = min(MAX_TILE[1], LOOKED_AT_PX - reach_px, WIDE_BYTES // (4 * channels))
    area = HELD_BYTES // (4 * predictions)
    width = max(MIN_TILE_PX, min(width, max(area // MAX_TILE[0], math.isqrt(area // 2))) // 64 * 64)
    return max(MIN_TILE_PX, min(MAX_TILE[0], area // width // 64 * 64)), width


def cut_to(tile: Tile, wanted: NDArray[np.bool_]) -> Tile | None:
    """The smallest part of `tile` that has all `wanted` pixels [rows, columns] of it; None where none is wanted."""
    down, across = np.flatnonzero(wanted.any(1)), np.flatnonzero(wanted.any(0))
    if not len(down):
        return None
    top, left = tile.rows.start, tile.columns.start
    rows, columns = (
        Span(top + int(down[0]), top + int(down[-1]) + 1),
        Span(left + int(across[0]), left + int(across[-1]) + 1),
    )
    return Tile(tile.number, rows, columns)


def checked_tile_px(tile_px: int) -> tuple[int, int]:
    """A square tile of the user's own size."""
    if isinstance(tile_px, bool) or not isinstance(tile_px, int) or not 16 <= tile_px <= 16_384:
        raise InputError(f"`tile_px` (={tile_px!r}) must be a whole number of pixels from 16 to 16384")
    return tile_px, tile_px


def limited(seen: Span, core: Span, overlap_px: int, stride_px: int, length: int) -> Span:
    """`seen`, or as much of it as lies within `overlap_px` of `core`, with ends at multiples of the pooling stride."""
    start, stop = max(seen.start, core.start - overlap_px), min(seen.stop, core.stop + overlap_px)
    return Span(start // stride_px * stride_px, min(length, -(-stop // stride_px) * stride_px))
