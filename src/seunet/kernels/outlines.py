r"""Runs of one object → the rings of its outline, along the edges of the pixels.

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

from seunet.kernels.compiled import compiled

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
