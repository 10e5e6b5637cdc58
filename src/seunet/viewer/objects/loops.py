"""The text of GeoJSON coordinates → rings → the pieces of outlines that lie in each cell of a slide.

A cell is a square of `CELL_PX` level-0 pixels.  Its pieces are polylines of 16-bit numbers: object (low, high half),
number of points, class, then x and y of each point from the cell's corner, in units of 1 / `UNITS` pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seunet.kernels.compiling.first_call import compiled

CELL_PX = 1024
UNITS = 8
MAX_POINTS = 30_000
LONGEST_PX = 1024.0
"""Longer edges are cut, so that every point of a piece is near its cell."""


@compiled
def number_at(text: Any, at: int) -> tuple[float, int]:
    """The number that begins at `at` and the place after it; the same place if there is none."""
    start, sign, value, digits = at, 1.0, 0.0, 0
    if at < len(text) and text[at] == 45:
        sign, at = -1.0, at + 1
    while at < len(text) and 48 <= text[at] <= 57:
        value, at, digits = value * 10 + (text[at] - 48), at + 1, digits + 1
    if at < len(text) and text[at] == 46:
        at, step = at + 1, 0.1
        while at < len(text) and 48 <= text[at] <= 57:
            value, at, digits, step = value + (text[at] - 48) * step, at + 1, digits + 1, step / 10
    if digits == 0:
        return 0.0, start
    if at < len(text) and (text[at] == 101 or text[at] == 69):
        at, negative, power = at + 1, False, 0
        if at < len(text) and (text[at] == 43 or text[at] == 45):
            negative, at = text[at] == 45, at + 1
        while at < len(text) and 48 <= text[at] <= 57 and power < 400:
            power, at = power * 10 + (text[at] - 48), at + 1
        value *= 10.0 ** (-power if negative else power)
    return sign * value, at


@compiled
def parse_rings(text: Any, points: Any, stops: Any) -> tuple[int, int]:
    """Fill in the points [(x, y)] of all rings and where each ring ends; how many of both, (−1, place) if it is none.

    `points` needs room for half the text's length, `stops` for a quarter.
    """
    placed, rings, numbers, depth, at = 0, 0, 0, 0, 0
    while at < len(text):
        sign = text[at]
        if sign == 91:
            depth, at = depth + 1, at + 1
        elif sign == 93:
            if numbers >= 2:
                placed += 1
            elif numbers == 0 and placed > (stops[rings - 1] if rings else 0):
                stops[rings] = placed
                rings += 1
            numbers, depth, at = 0, depth - 1, at + 1
            if depth < 0:
                return -1, at
        elif sign == 44 or sign == 32:
            at += 1
        else:
            value, after = number_at(text, at)
            if after == at or not np.isfinite(value) or abs(value) > 1e9:
                return -1, at
            if numbers < 2:
                points[placed, numbers] = value
            numbers, at = numbers + 1, after
    return (placed, rings) if depth == 0 else (-1, at)


@compiled
def box_and_center(points: Any, stops: Any) -> tuple[float, float, float, float, float, float]:
    """left, top, right, bottom of all rings and the centre of their area (holes turn the other way)."""
    left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
    area, x_sum, y_sum, start = 0.0, 0.0, 0.0, 0
    x0, y0 = points[0, 0], points[0, 1]
    for stop in stops:
        for this in range(start, stop):
            other = this + 1 if this + 1 < stop else start
            ax, ay = points[this, 0] - x0, points[this, 1] - y0
            bx, by = points[other, 0] - x0, points[other, 1] - y0
            cross = ax * by - bx * ay
            area, x_sum, y_sum = area + cross, x_sum + (ax + bx) * cross, y_sum + (ay + by) * cross
            left, right = min(left, points[this, 0]), max(right, points[this, 0])
            top, bottom = min(top, points[this, 1]), max(bottom, points[this, 1])
        start = stop
    if area == 0:
        return left, top, right, bottom, (left + right) / 2, (top + bottom) / 2
    return left, top, right, bottom, x0 + x_sum / (3 * area), y0 + y_sum / (3 * area)


@compiled
def cut_into_cells(points: Any, stops: Any, columns: int, rows: int) -> tuple[Any, Any, Any]:
    """All edges of all rings, long ones cut: their ends [edges, (x, y, x, y)], ring and cell, for each cell.

    `stops` are where the rings end; rings are closed here if they are not.
    """
    room = 1024
    ends, ring_of, cell_of = np.empty((room, 4)), np.empty(room, np.int64), np.empty(room, np.int64)
    count, start = 0, 0
    for ring in range(len(stops)):
        for this in range(start, stops[ring]):
            other = this + 1 if this + 1 < stops[ring] else start
            ax, ay, bx, by = points[this, 0], points[this, 1], points[other, 0], points[other, 1]
            if ax == bx and ay == by:
                continue
            parts = int(np.hypot(bx - ax, by - ay) / LONGEST_PX) + 1
            for part in range(parts):
                x1, y1 = ax + (bx - ax) * part / parts, ay + (by - ay) * part / parts
                x2, y2 = ax + (bx - ax) * (part + 1) / parts, ay + (by - ay) * (part + 1) / parts
                first_column = min(max(int(min(x1, x2) // CELL_PX), 0), columns - 1)
                last_column = min(max(int(max(x1, x2) // CELL_PX), 0), columns - 1)
                first_row = min(max(int(min(y1, y2) // CELL_PX), 0), rows - 1)
                last_row = min(max(int(max(y1, y2) // CELL_PX), 0), rows - 1)
                for row in range(first_row, last_row + 1):
                    for column in range(first_column, last_column + 1):
                        if count == room:
                            room *= 2
                            more, more_rings, more_cells = (
                                np.empty((room, 4)),
                                np.empty(room, np.int64),
                                np.empty(room, np.int64),
                            )
                            more[:count], more_rings[:count], more_cells[:count] = ends, ring_of, cell_of
                            ends, ring_of, cell_of = more, more_rings, more_cells
                        ends[count] = (x1, y1, x2, y2)
                        ring_of[count], cell_of[count] = ring, row * columns + column
                        count += 1
        start = stops[ring]
    return ends[:count], ring_of[:count], cell_of[:count]


@compiled
def unit(value: float) -> int:
    """In units of a piece; what lies far outside the slide is held at the end of what can be told."""
    return int(min(max(np.rint(value * UNITS), -32768), 32767))


@compiled
def pieces_of_cells(ends: Any, ring_of: Any, cell_of: Any, object_of: Any, class_of: Any, columns: int) -> Any:
    """Edges, sorted by cell, → the numbers of all pieces, and for each cell [cell, start, stop] where its own lie."""
    out, cells = np.empty(8 * len(ends) + 8, np.int16), np.empty((len(ends), 3), np.int64)
    placed, head, found = 0, -1, 0
    for edge in range(len(ends)):
        cell, ring = cell_of[edge], ring_of[edge]
        left, top = (cell % columns) * CELL_PX, (cell // columns) * CELL_PX
        new_cell = edge == 0 or cell != cell_of[edge - 1]
        if new_cell:
            if found:
                cells[found - 1, 2] = placed
            cells[found, 0], cells[found, 1] = cell, placed
            found += 1
        goes_on = (
            not new_cell
            and ring == ring_of[edge - 1]
            and ends[edge, 0] == ends[edge - 1, 2]
            and ends[edge, 1] == ends[edge - 1, 3]
            and out[head + 2] < MAX_POINTS
        )
        if not goes_on:
            head = placed
            number = object_of[ring]
            out[head], out[head + 1] = np.int16(number & 0xFFFF), np.int16(number >> 16)
            out[head + 2], out[head + 3] = 1, class_of[ring]
            out[head + 4], out[head + 5] = unit(ends[edge, 0] - left), unit(ends[edge, 1] - top)
            placed += 6
        out[placed], out[placed + 1] = unit(ends[edge, 2] - left), unit(ends[edge, 3] - top)
        out[head + 2] += 1
        placed += 2
    if found:
        cells[found - 1, 2] = placed
    return out[:placed], cells[:found]
