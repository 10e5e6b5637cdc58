r"""Runs of objects → the rings of their outlines, along the edges of the pixels.

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


@compiled
def trace_objects(rows: Any, starts: Any, ends: Any, stops: Any, smooth_px: int) -> tuple[Any, Any, Any, Any, Any]:
    """`trace_rings` of objects whose runs end before `stops`, one after the other.

    The points, where rings end, how many rings there are up to each object, and of each object the pixel edges and
    corners (`edges_and_corners`) and whether its points are those of `through_middles`: where `smooth_px` is not 0 and
    it has so many pixels for each ring.
    """
    number, corners = len(stops), 4 * len(rows)  # at most; and four of them, at least, make a ring
    points = np.empty((2 * corners if smooth_px else corners, 2), dtype=np.int32)
    ring_stops = np.empty(len(rows), dtype=np.int64)
    object_rings, measured = np.empty(number, dtype=np.int64), np.empty((2, number), dtype=np.int64)
    smoothed = np.zeros(number, dtype=np.bool_)
    first, placed, ring = 0, 0, 0
    for one in range(number):
        begin, first, area = first, stops[one], 0
        found, found_stops = trace_rings(rows[begin:first], starts[begin:first], ends[begin:first])
        measured[0, one], measured[1, one] = edges_and_corners(found, found_stops)
        for run in range(begin, first):
            area += ends[run] - starts[run]
        if smooth_px and area >= smooth_px * len(found_stops):
            found, found_stops = through_middles(found, found_stops)
            smoothed[one] = True
        for stop in found_stops:
            ring_stops[ring] = placed + stop
            ring += 1
        for point in range(len(found)):
            points[placed, 0], points[placed, 1] = found[point, 0], found[point, 1]
            placed += 1
        object_rings[one] = ring
    return points[:placed], ring_stops[:ring], object_rings, measured, smoothed
