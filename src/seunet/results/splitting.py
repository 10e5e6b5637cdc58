r"""Touching nuclei are separated where their object narrows.

The inscribed radius of a pixel is its distance to the nearest pixel outside, less half a pixel.  Peaks of that
radius are the middles of nuclei.  The object is filled from its peaks downwards; where two basins meet, the radius is
half the width of the neck between them.  They stay apart if the neck is clearly narrower than the smaller of the
two: below `neck` times its radius, and by at least `slack_px`, which is what the staircase of a pixel outline can
feign.  Otherwise they become one.  `neck` has no unit, so the rule follows the size of the object.

Where the model has learnt the rim between touching nuclei, what it calls rim is taken out first, and in the end shared
out between the nuclei on either side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seunet.kernels.compiling.first_call import compiled


@compiled
def upright_distance(inside: Any) -> Any:
    """Distance of each pixel to the nearest one in its column that is not `inside`."""
    height, width = inside.shape
    distance = np.zeros((height, width), dtype=np.int32)
    for r in range(1, height):
        for c in range(width):
            distance[r, c] = distance[r - 1, c] + 1 if inside[r, c] else 0
    for r in range(height - 2, -1, -1):
        for c in range(width):
            distance[r, c] = min(distance[r, c], distance[r + 1, c] + 1)
    return distance


@compiled
def lower_envelope(upright: Any, lowest: Any, since: Any) -> int:
    """Which of the parabolas (x − c)² + upright[c]² is the lowest, and from where on; the place of the last of them."""
    top = 0
    lowest[0], since[0] = 0, 0
    for c in range(1, len(upright)):
        here = np.int64(upright[c]) ** 2
        while top >= 0:
            other, at = lowest[top], since[top]
            if (at - other) ** 2 + np.int64(upright[other]) ** 2 <= (at - c) ** 2 + here:
                break
            top -= 1
        if top < 0:
            top, lowest[0] = 0, c
            continue
        rise = c * c - lowest[top] ** 2 + here - np.int64(upright[lowest[top]]) ** 2
        start = 1 + rise // (2 * (c - lowest[top]))
        if start < len(upright):
            top += 1
            lowest[top], since[top] = c, start
    return top


@compiled
def squared_distance(inside: Any) -> Any:
    """Squared distance of each pixel to the nearest one that is not `inside`; the border must not be inside.

    Exact, in whole numbers: columns first, then for each row the lower envelope of one parabola per column (Meijster,
    Roerdink and Hesselink 2000).
    """
    height, width = inside.shape
    upright = upright_distance(inside)
    squared = np.zeros((height, width), dtype=np.int32)
    lowest, since = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    for r in range(height):
        top = lower_envelope(upright[r], lowest, since)
        for c in range(width - 1, -1, -1):
            squared[r, c] = (c - lowest[top]) ** 2 + np.int64(upright[r, lowest[top]]) ** 2
            if c == since[top]:
                top -= 1
    return squared


@compiled
def from_high_to_low(heights: Any) -> Any:
    """Indices of the `heights` above 0, the highest first, equal ones in their order."""
    places = np.zeros(heights.max() + 2, dtype=np.int64)  # how many are higher
    for height in heights:
        places[height] += 1
    total = 0
    for height in range(len(places) - 1, -1, -1):
        places[height], total = total, total + places[height]
    order = np.empty(places[0], dtype=np.int32)
    for index in range(len(heights)):
        if heights[index] > 0:
            order[places[heights[index]]] = index
            places[heights[index]] += 1
    return order


@compiled
def basin_root(parents: Any, basin: int) -> int:
    while parents[basin] != basin:
        parents[basin] = parents[parents[basin]]
        basin = parents[basin]
    return basin


@compiled
def join_basins(parents: Any, peaks: Any, a: int, b: int, radius: float, neck: float, slack_px: float) -> None:
    """Make one of two basins that meet at a pixel of this radius, unless there is a neck."""
    a, b = basin_root(parents, a), basin_root(parents, b)
    smaller = min(peaks[a], peaks[b])
    if a != b and radius > min(neck * smaller, smaller - slack_px):
        high, low = (a, b) if peaks[a] >= peaks[b] else (b, a)
        parents[low] = high


@compiled
def parts_of(inside: Any, neck: float, slack_px: float) -> tuple[Any, int]:
    """The part each pixel belongs to, 1 … parts in reading order, and how many; the border must not be inside.

    A pixel joins the basin of its highest neighbour through an edge: every part is connected through edges.
    """
    heights = squared_distance(inside).ravel()
    order = from_high_to_low(heights)
    width = inside.shape[1]
    marks = np.zeros(len(heights), dtype=np.int32)
    parents = np.arange(len(order) + 1)
    peaks = np.zeros(len(order) + 1, dtype=np.float64)
    count = 0
    for pixel in order:
        highest = -1
        for other in (pixel - width, pixel - 1, pixel + 1, pixel + width):
            if marks[other] and (highest < 0 or heights[other] > heights[highest]):
                highest = other
        radius = np.sqrt(float(heights[pixel])) - 0.5
        if highest < 0:
            count += 1
            marks[pixel], peaks[count] = count, radius
            continue
        marks[pixel] = marks[highest]
        for other in (pixel - width, pixel - 1, pixel + 1, pixel + width):
            if marks[other] and marks[other] != marks[pixel]:
                join_basins(parents, peaks, marks[pixel], marks[other], radius, neck, slack_px)
    return marks.reshape(inside.shape), number_parts(marks, parents)


@compiled
def number_parts(marks: Any, parents: Any) -> int:
    """Replace basins by parts numbered in reading order; returns how many there are."""
    numbers, parts = np.zeros(len(parents), dtype=np.int32), 0
    for pixel in range(len(marks)):
        if marks[pixel]:
            root = basin_root(parents, marks[pixel])
            if numbers[root] == 0:
                parts += 1
                numbers[root] = parts
            marks[pixel] = numbers[root]
    return parts


@compiled
def without_small(marks: Any, parts: int, min_px: int) -> int:
    """Take the mark from the pixels of parts that have fewer; how many pixels keep theirs."""
    sizes, kept = np.zeros(parts + 1, dtype=np.int64), 0
    for mark in marks.flat:
        sizes[mark] += 1
    for r in range(marks.shape[0]):
        for c in range(marks.shape[1]):
            if sizes[marks[r, c]] < min_px:
                marks[r, c] = 0
            kept += marks[r, c] > 0
    return kept


@compiled
def grow_into(marks: Any, inside: Any) -> None:
    """Give each pixel inside without a mark that of the nearest part, by steps through edges, all parts in turn."""
    height, width = marks.shape
    queue = np.empty(height * width, dtype=np.int64)
    first, last = 0, 0
    for pixel in range(height * width):
        if marks[pixel // width, pixel % width]:
            queue[last] = pixel
            last += 1
    while first < last:
        r, c = queue[first] // width, queue[first] % width
        first += 1
        for rr, cc in ((r - 1, c), (r, c - 1), (r, c + 1), (r + 1, c)):
            if 0 <= rr < height and 0 <= cc < width and inside[rr, cc] and not marks[rr, cc]:
                marks[rr, cc] = marks[r, c]
                queue[last] = rr * width + cc
                last += 1


@compiled
def parts_by_rim(inside: Any, rim: Any, top: int, left: int, rule: tuple[float, float, int]) -> tuple[Any, int]:
    """`parts_of` what is inside without the rim, which is shared out between them.

    Pixel (1, 1), within the border, is (`top`, `left`) of `rim`, which may be empty.  Where nothing large enough is
    left without the rim, the object is parted by its necks alone.
    """
    neck, slack_px, min_core_px = rule
    cores, parted = inside, False
    if len(rim):
        cores = inside.copy()
        for r in range(1, inside.shape[0] - 1):
            for c in range(1, inside.shape[1] - 1):
                if inside[r, c] and rim[top + r - 1, left + c - 1]:
                    cores[r, c], parted = False, True
    marks, parts = parts_of(cores, neck, slack_px)
    if not parted:
        return marks, parts
    if without_small(marks, parts, min_core_px) == 0:
        marks, parts = parts_of(inside, neck, slack_px)
    grow_into(marks, inside)
    return marks, number_parts(marks.ravel(), np.arange(parts + 1))


@compiled
def with_room(found: Any, used: int, wanted: int) -> Any:
    """The same rows, `used` of them, where there is room for as many as are wanted."""
    if wanted <= len(found):
        return found
    more = np.empty((2 * wanted, found.shape[1]), dtype=np.int32)
    for row in range(used):
        for column in range(found.shape[1]):
            more[row, column] = found[row, column]
    return more


@compiled
def put_parts(found: Any, at: int, marks: Any, parts: int, top: int, left: int) -> tuple[Any, int]:
    """The runs of marked parts as rows (row, start, end, part), part by part and in reading order, from row `at` on.

    Pixel (1, 1) of `marks` is (`top`, `left`).  The array, which may be a longer one, and where they end.
    """
    places = np.zeros(parts + 2, dtype=np.int64)
    for r in range(1, marks.shape[0]):
        for c in range(1, marks.shape[1]):
            if marks[r, c] and marks[r, c] != marks[r, c - 1]:
                places[marks[r, c] + 1] += 1
    places[1] = at
    for mark in range(1, parts + 1):
        places[mark + 1] += places[mark]
    stop = places[parts + 1]
    found = with_room(found, at, stop)
    for r in range(1, marks.shape[0]):
        c = 1
        while c < marks.shape[1]:
            start, mark = c, marks[r, c]
            while c < marks.shape[1] and marks[r, c] == mark:
                c += 1
            if mark:
                place = places[mark]
                places[mark] += 1
                found[place, 0], found[place, 3] = r - 1 + top, mark
                found[place, 1], found[place, 2] = start - 1 + left, c - 1 + left
    return found, stop


@compiled
def split_objects(
    rows: Any, starts: Any, ends: Any, stops: Any, splits: Any, rule: tuple[float, float, int], rim: Any, corner: Any
) -> Any:
    """The parts of every object, of which the runs end before `stops`, that `splits`; the others as they are.

    [runs, (row, start, end, part, object)], part by part.  `rule`: neck, slack and smallest core; `rim` has the
    bounding boxes of all that are split, from `corner` (row, column) on, or is empty for none.
    """
    found, placed, first = np.empty((2 * len(rows), 5), dtype=np.int32), np.int64(0), np.int64(0)
    for one in range(len(stops)):
        begin, first, before = first, stops[one], placed
        if splits[one]:
            top, left, right = np.int64(rows[begin]), np.int64(starts[begin]), np.int64(ends[begin])
            for run in range(begin, first):
                left, right = min(left, starts[run]), max(right, ends[run])
            inside = np.zeros((rows[first - 1] - top + 3, right - left + 2), dtype=np.bool_)
            for run in range(begin, first):
                for column in range(starts[run], ends[run]):
                    inside[rows[run] - top + 1, column - left + 1] = True
            marks, parts = parts_by_rim(inside, rim, top - corner[0], left - corner[1], rule)
            found, placed = put_parts(found, placed, marks, parts, top, left)
        else:
            found = with_room(found, placed, placed + first - begin)
            for run in range(begin, first):
                found[placed, 0], found[placed, 1], found[placed, 2] = rows[run], starts[run], ends[run]
                found[placed, 3] = 1
                placed += 1
        for row in range(before, placed):
            found[row, 4] = one
    return found[:placed]
