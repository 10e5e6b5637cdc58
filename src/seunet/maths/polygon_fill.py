r"""Closed rings of vertices → pixels, by the pixel-centre rule.

The centre of the pixel in row r, column c is the point (x = c, y = r).  It belongs to a ring if the ring's
winding number around it is not zero, or if it lies on the ring.  Not zero, rather than odd: a ring that was
traced twice, or that crosses itself as hand-drawn outlines do, still covers what it encloses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CHUNK_CROSSINGS = 2_000_000
"""Edge × row pairs handled at once: bounds the memory a ring with many long edges can take."""


class Patch(NamedTuple):
    """The pixels of a ring: `covered` [height, width], its top-left pixel at (`row`, `column`)."""

    row: int
    column: int
    covered: NDArray[np.bool_]


def ring_pixels(ring: FloatArray, height_px: int, width_px: int) -> Patch:
    """The pixels of a height_px × width_px image whose centre is inside or on `ring` [vertices, (x, y)].

    Scan lines: an edge that crosses the line y = r upwards adds +1 to the winding number of every centre to
    its left in that row, downwards −1.  Edges are half-open in y, so a vertex on a scan line counts once.
    """
    x, y = ring[:, 0], ring[:, 1]
    top, bottom = _span(y, height_px)
    left, right = _span(x, width_px)
    rows, columns = bottom - top, right - left
    if rows <= 0 or columns <= 0:
        return Patch(0, 0, np.zeros((0, 0), dtype=np.bool_))
    steps = np.zeros((rows, columns + 1), dtype=np.int32)
    touched = np.zeros((rows, columns), dtype=np.bool_)
    # Relative to the patch, so that large coordinates lose no precision in what follows.
    x0, y0 = x - left, y - top
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    _mark_level_edges(touched, x0, x1, y0, y1)
    sloped = np.flatnonzero(y0 != y1)
    for part in _chunks(sloped, y0, y1, rows):
        _add_crossings(steps, touched, x0[part], x1[part], y0[part], y1[part])
    # steps[r, k] holds the direction of a crossing that covers the centres c < k.
    winding = np.cumsum(steps[:, ::-1], axis=1, dtype=np.int32)[:, ::-1][:, 1:]
    return Patch(top, left, (winding != 0) | touched)


def outside_distance(ring: FloatArray, height_px: int, width_px: int) -> FloatArray:
    """How far, in pixels, each vertex lies beyond the outermost pixel centres; 0 inside."""
    limits = np.array([width_px - 1, height_px - 1], dtype=np.float64)
    beyond: FloatArray = np.maximum(np.maximum(-ring, ring - limits), 0).max(axis=1)
    return beyond


def _span(values: FloatArray, size_px: int) -> tuple[int, int]:
    """First and one-past-last pixel index whose centre lies within the extent of `values` and the image."""
    low, high = np.ceil(values.min()), np.floor(values.max())
    return int(np.clip(low, 0, size_px)), int(np.clip(high, -1, size_px - 1)) + 1


def _chunks(edges: NDArray[np.intp], y0: FloatArray, y1: FloatArray, rows: int) -> list[NDArray[np.intp]]:
    """Groups of `edges` that together cross at most about CHUNK_CROSSINGS rows."""
    heights = np.clip(np.abs(y1[edges] - y0[edges]) + 2, 0, rows + 2)
    groups = np.cumsum(heights) // CHUNK_CROSSINGS
    return [edges[groups == group] for group in np.unique(groups)]


def _add_crossings(
    steps: NDArray[np.int32],
    touched: NDArray[np.bool_],
    x0: FloatArray,
    x1: FloatArray,
    y0: FloatArray,
    y1: FloatArray,
) -> None:
    """Add the crossings of the sloped edges (x0, y0) → (x1, y1) with the scan lines; mark centres on them."""
    rows, columns = touched.shape
    first = np.clip(np.ceil(np.minimum(y0, y1)), 0, rows).astype(np.int64)
    last = np.clip(np.floor(np.maximum(y0, y1)), -1, rows - 1).astype(np.int64)
    count = np.maximum(last - first + 1, 0)
    edge = np.repeat(np.arange(len(x0)), count)
    row = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count)
    # Product before quotient: exact wherever vertices and crossing are whole numbers.
    at = x0[edge] + (row - y0[edge]) * (x1 - x0)[edge] / (y1 - y0)[edge]
    upper = np.maximum(y0, y1)[edge]
    crossing = row < upper
    direction = np.where(y1 > y0, 1, -1)[edge]
    covers = np.clip(np.ceil(at), 0, columns).astype(np.int64)
    np.add.at(steps, (row[crossing], covers[crossing]), direction[crossing])
    on = (at == np.floor(at)) & (at >= 0) & (at < columns)
    touched[row[on], at[on].astype(np.int64)] = True


def _mark_level_edges(
    touched: NDArray[np.bool_], x0: FloatArray, x1: FloatArray, y0: FloatArray, y1: FloatArray
) -> None:
    """Mark the centres on level edges: y0 = y1, on a scan line."""
    rows, columns = touched.shape
    level = (y0 == y1) & (y0 == np.floor(y0)) & (y0 >= 0) & (y0 < rows)
    for a, b, y in zip(x0[level], x1[level], y0[level], strict=True):
        first = int(np.clip(np.ceil(min(a, b)), 0, columns))
        last = int(np.clip(np.floor(max(a, b)), -1, columns - 1))
        touched[int(y), first : last + 1] = True
