r"""Rings along pixel edges: their areas, lengths, and the same with the corners cut.

A ring is [corners, (x, y)]; the last corner is joined to the first, which is not repeated.  The pixel in row r,
column c covers [c, c+1] × [r, r+1], as in QuPath, so an outline along pixel edges has exactly the area of its pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

IntRing = NDArray[np.int32]
FloatRing = NDArray[np.float64]

ISOTROPIC: Final = math.pi / 8 * (1 + math.sqrt(2))
"""Mean of true length / length along the eight directions, over all directions of a line."""

AREA_CHANGE: Final = 0.005
"""Of the pixels' area: what cutting the corners may change."""


def signed_area(ring: NDArray[Any]) -> float:
    """Positive for a ring that turns from +x to +y."""
    x, y = ring[:, 0].astype(np.float64), ring[:, 1].astype(np.float64)
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def outline_length(rings: Sequence[IntRing]) -> float:
    """The length of a smooth outline that these pixel edges stand for, in pixels.

    Going through the middles of the edges, two edges in line give length 1 and two around a corner √½: a line along
    eight directions, too long by a factor that depends on its direction and is 1/0.948 in the mean.
    """
    edges = sum(int(np.abs(ring - np.roll(ring, -1, axis=0)).sum()) for ring in rings)
    corners = sum(len(ring) for ring in rings)
    return ISOTROPIC * ((edges - corners) + corners * math.sqrt(0.5))


def circularity(area: float, length: float) -> float:
    """4π · area / length²: 1 for a disc, less for anything else; pixels can feign more, which is cut to 1."""
    return min(1.0, 4 * math.pi * area / length**2)


def without_corners(rings: Sequence[IntRing]) -> list[FloatRing]:
    """The rings through the middles of the pixel edges: about half the corners, and smooth to look at.

    Every pixel centre stays on its side, so the rings still stand for the same pixels.  Each outward corner takes an
    eighth of a pixel from the area and each inward one adds as much: half a pixel for a whole ring.  Where that is
    more than AREA_CHANGE of the area, the rings come back as they were.
    """
    smooth = [_middles(ring) for ring in rings]
    area = sum(signed_area(ring) for ring in rings)
    if abs(sum(signed_area(ring) for ring in smooth) - area) > AREA_CHANGE * area:
        return [ring.astype(np.float64) for ring in rings]
    return smooth


def _middles(ring: IntRing) -> FloatRing:
    """For each edge its first and last half-way points; where edges have length 1 these are one.  None in line."""
    ahead = np.roll(ring, -1, axis=0) - ring
    step = np.sign(ahead) / 2
    ends = np.stack([ring + step, ring + ahead - step], axis=1)
    single = np.abs(ahead).sum(axis=1) == 1
    keep = np.stack([np.ones(len(ring), dtype=np.bool_), ~single], axis=1)
    points: FloatRing = ends[keep]
    back, forth = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    turns: FloatRing = points[back[:, 0] * forth[:, 1] != back[:, 1] * forth[:, 0]]
    return turns
