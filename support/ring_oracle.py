"""An independent rasteriser: the winding number of every pixel centre in whole-number arithmetic.

Coordinates are multiples of 1/8, so that every test “left of, on, right of an edge” is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EIGHTHS = 8


def covered_exactly(ring: NDArray[np.float64], height: int, width: int) -> NDArray[np.bool_]:
    """Centres with a winding number other than zero (Sunday's isLeft) or on an edge."""
    points = np.round(ring * EIGHTHS).astype(np.int64)
    if not (points == ring * EIGHTHS).all():
        raise ValueError("the oracle takes multiples of 1/8")
    rows, columns = np.mgrid[:height, :width] * EIGHTHS
    winding = np.zeros((height, width), dtype=np.int64)
    on_edge = np.zeros((height, width), dtype=bool)
    for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, axis=0), strict=True):
        left = (x1 - x0) * (rows - y0) - (columns - x0) * (y1 - y0)
        winding += ((y0 <= rows) & (y1 > rows) & (left > 0)).astype(np.int64)
        winding -= ((y0 > rows) & (y1 <= rows) & (left < 0)).astype(np.int64)
        within = (np.minimum(x0, x1) <= columns) & (columns <= np.maximum(x0, x1))
        within &= (np.minimum(y0, y1) <= rows) & (rows <= np.maximum(y0, y1))
        on_edge |= within & (left == 0)
    covered: NDArray[np.bool_] = (winding != 0) | on_edge
    return covered


def random_ring(random: np.random.Generator, size_px: int) -> NDArray[np.float64]:
    """A ring to be feared: self-crossing, doubled, level, with repeated vertices, or off the image."""
    count = int(random.integers(3, 24))
    step = int(random.choice([1, 2, 4, 8]))
    ring = random.integers(-4 * EIGHTHS, (size_px + 4) * EIGHTHS, (count, 2)) // step * step / EIGHTHS
    kind = random.integers(0, 6)
    if kind == 0:
        ring = np.concatenate([ring, ring])
    elif kind == 1:
        ring = np.repeat(ring, 2, axis=0)
    elif kind == 2:
        ring[:, 1] = ring[0, 1]
    elif kind == 3:
        angle = np.sort(random.uniform(0, 2 * np.pi, count))
        round_ring = size_px / 2 + size_px / 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        ring = np.round(round_ring * EIGHTHS) / EIGHTHS
    elif kind == 4:
        ring = np.concatenate([ring, ring[::-1]])
    return ring.astype(np.float64)
