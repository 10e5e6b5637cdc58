r"""Runs of one object → the rings of its outline, along the edges of the pixels → the text of GeoJSON coordinates.

The corner of the pixels (row r, column c) is the point (x = c, y = r); the pixel covers [c, c+1] × [r, r+1].  On the
line between two rows every start or end of a run that stands in one of the rows only is a corner of the outline.
Corners on a line pair up into level edges, from left to right; upright edges are followed from row to row.

Where four pixels meet and only two opposite ones belong to the object, two corners lie on one point.  There the
outline turns so that the object stays joined: each ring then passes that point once.  For an object that is connected
through pixel edges this makes every ring simple, and the rings touch in points only: a valid polygon.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from seunet.kernels.compiling.first_call import compiled

FAR = 2**31 - 1
"""Beyond every column."""


@compiled
def trace_corners(rows: Any, starts: Any, ends: Any) -> tuple[Any, Any, Any]:
    """x, y of all corners, level edges between corners 2k and 2k + 1; and the other end of each upright edge."""
    number = len(rows)
    x, y = np.empty(4 * number, dtype=np.int32), np.empty(4 * number, dtype=np.int32)
    upright = np.empty(4 * number, dtype=np.int64)
    # Where the upright edge at the start (2 · run) and end (2 · run + 1) of each run begins.
    begun = np.empty(2 * number, dtype=np.int64)
    corners, above, here = 0, 0, 0
    for line in range(rows[0], rows[-1] + 2):
        # Runs above … here − 1 lie over the line, here … below − 1 under it.
        below = here
        while below < number and rows[below] == line:
            below += 1
        a, b = 2 * above, 2 * here  # the next end points over and under the line
        while a < 2 * here or b < 2 * below:
            at_a = (starts[a // 2] if a % 2 == 0 else ends[a // 2]) if a < 2 * here else FAR
            at_b = (starts[b // 2] if b % 2 == 0 else ends[b // 2]) if b < 2 * below else FAR
            if at_a == at_b and a % 2 == b % 2:
                begun[b] = begun[a]
                a, b = a + 1, b + 1
                continue
            # Of two on one point the start of a run comes first: that joins the two pixels of the object.
            over = at_a < at_b or (at_a == at_b and a % 2 == 0)
            x[corners], y[corners] = (at_a if over else at_b), line
            if over:
                upright[corners], upright[begun[a]] = begun[a], corners
                a += 1
            else:
                begun[b] = corners
                b += 1
            corners += 1
        above, here = here, below
    return x[:corners], y[:corners], upright[:corners]


@compiled
def trace_rings(rows: Any, starts: Any, ends: Any) -> tuple[Any, Any]:
    """The rings' corners [corners, (x, y)], one ring after the other, and where each ends.

    The outer ring is first and turns from +x to +y (positive area, as GeoJSON wants it); holes turn the other way.
    No corner is repeated at a ring's end.
    """
    x, y, upright = trace_corners(rows, starts, ends)
    points, stops = np.empty((len(x), 2), dtype=np.int32), np.empty(len(x) // 4 + 1, dtype=np.int64)
    done = np.zeros(len(x), dtype=np.bool_)
    placed, rings = 0, 0
    for first in range(len(x)):
        if done[first]:
            continue
        # `first` is the ring's top left corner: its level edge leads right, its upright one down.
        corner = first
        while not done[corner]:
            if rings == 0:
                ahead = corner ^ 1
                after = upright[ahead]
            else:
                ahead = upright[corner]
                after = ahead ^ 1
            for step in (corner, ahead):
                points[placed, 0], points[placed, 1] = x[step], y[step]
                done[step] = True
                placed += 1
            corner = after
        stops[rings] = placed
        rings += 1
    return points, stops[:rings]


@compiled
def edges_and_corners(points: Any, stops: Any) -> tuple[int, int]:
    """How many pixel edges the rings run along, and how many corners they turn."""
    edges, start = 0, 0
    for stop in stops:
        for this in range(start, stop):
            other = this + 1 if this + 1 < stop else start
            edges += abs(points[other, 0] - points[this, 0]) + abs(points[other, 1] - points[this, 1])
        start = stop
    return edges, len(points)


@compiled
def through_middles(points: Any, stops: Any) -> tuple[Any, Any]:
    """The rings through the middles of the pixel edges, in half pixels, and where each ends.

    Every pixel centre stays on its side, so the rings still stand for the same pixels.  Each outward corner takes an
    eighth of a pixel from the area and each inward one adds as much: half a pixel for a whole ring.
    """
    found, ends = np.empty((2 * len(points), 2), dtype=np.int32), np.empty_like(stops)
    placed, start = 0, 0
    for ring in range(len(stops)):
        for this in range(start, stops[ring]):
            other = this + 1 if this + 1 < stops[ring] else start
            before = this - 1 if this > start else stops[ring] - 1
            after = other + 1 if other + 1 < stops[ring] else start
            x, y = points[other, 0] - points[this, 0], points[other, 1] - points[this, 1]
            length = abs(x) + abs(y)
            if length == 1:
                # One middle.  Where the outline turns right and left by turns it goes straight through it.
                turn = (points[this, 0] - points[before, 0]) * y - (points[this, 1] - points[before, 1]) * x
                next_turn = x * (points[after, 1] - points[other, 1]) - y * (points[after, 0] - points[other, 0])
                if (turn > 0) == (next_turn > 0):
                    found[placed, 0], found[placed, 1] = 2 * points[this, 0] + x, 2 * points[this, 1] + y
                    placed += 1
            else:
                for middle, side in ((this, 1), (other, -1)):
                    found[placed, 0] = 2 * points[middle, 0] + side * x // length
                    found[placed, 1] = 2 * points[middle, 1] + side * y // length
                    placed += 1
        ends[ring] = placed
        start = stops[ring]
    return found[:placed], ends


def coordinates_text(points: Any, stops: Any, scale: float, offset_x: int, offset_y: int) -> str:
    """[[[x,y],…],…]: each ring closed, points × scale − offset, rounded to thousandths, whole numbers without a point.

    Each axis is rounded by itself and, with a scale of 0.01 or more, no two pixel edges fall together, here or when a
    reader rounds to hundredths: outlines along pixel edges stay as valid as they were, and neighbours keep their
    common edge.
    """
    thousandths = np.rint(points * scale * 1000).astype(np.int64) - 1000 * np.array([offset_x, offset_y])
    rings = [np.concatenate([ring, ring[:1]]) for ring in np.split(thousandths / 1000, stops[:-1])]
    text = orjson.dumps(rings, option=orjson.OPT_SERIALIZE_NUMPY).decode("ascii")
    return text.replace(".0,", ",").replace(".0]", "]")
