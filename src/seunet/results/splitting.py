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
def parts_by_rim(inside: Any, rim: Any, neck: float, slack_px: float, min_core_px: int) -> tuple[Any, int]:
    """`parts_of` what is inside without the rim (of the part within the border); the rim is shared out between them.

    Where nothing large enough is left without the rim, the object is parted by its necks alone.
    """
    cores, parted = inside.copy(), False
    for r in range(rim.shape[0]):
        for c in range(rim.shape[1]):
            if rim[r, c] and inside[r + 1, c + 1]:
                cores[r + 1, c + 1], parted = False, True
    marks, parts = parts_of(cores, neck, slack_px)
    if not parted:
        return marks, parts
    if without_small(marks, parts, min_core_px) == 0:
        marks, parts = parts_of(inside, neck, slack_px)
    grow_into(marks, inside)
    return marks, number_parts(marks.ravel(), np.arange(parts + 1))


@compiled
def split_runs(
    rows: Any, starts: Any, ends: Any, neck: float, slack_px: float, rim: Any, min_core_px: int
) -> tuple[Any, Any, int]:
    """The runs [runs, (row, start, end)] of an object's parts, the part of each, and how many parts there are.

    Runs stay in reading order within a part.  `rim` covers the object's bounding box, or is empty for none.
    """
    top, left = rows[0], starts.min()
    inside = np.zeros((rows[-1] - top + 3, ends.max() - left + 2), dtype=np.bool_)
    for run in range(len(rows)):
        for column in range(starts[run], ends[run]):
            inside[rows[run] - top + 1, column - left + 1] = True
    marks, parts = parts_by_rim(inside, rim, neck, slack_px, min_core_px)
    number = 0
    for r in range(1, marks.shape[0]):
        for c in range(1, marks.shape[1]):
            number += marks[r, c] != 0 and marks[r, c] != marks[r, c - 1]
    runs, part = np.empty((number, 3), dtype=np.int32), np.empty(number, dtype=np.int64)
    placed = 0
    for r in range(1, marks.shape[0]):
        c = 1
        while c < marks.shape[1]:
            start, mark = c, marks[r, c]
            while c < marks.shape[1] and marks[r, c] == mark:
                c += 1
            if mark:
                runs[placed, 0], runs[placed, 1], runs[placed, 2] = r - 1 + top, start - 1 + left, c - 1 + left
                part[placed] = mark
                placed += 1
    return runs, part, parts


@compiled
def put_part_by_part(found: Any, at: int, runs: Any, part: Any, parts: int) -> None:
    """Rows (row, start, end, part) from row `at` of `found` on, the parts one after the other."""
    places = np.zeros(parts + 2, dtype=np.int64)
    for mark in part:
        places[mark + 1] += 1
    places[1] = at
    for mark in range(1, parts + 1):
        places[mark + 1] += places[mark]
    for run in range(len(runs)):
        place = places[part[run]]
        places[part[run]] += 1
        found[place, :3], found[place, 3] = runs[run], part[run]


@compiled
def split_objects(
    rows: Any, starts: Any, ends: Any, stops: Any, splits: Any, rule: tuple[float, float, int], rim: Any, corner: Any
) -> Any:
    """`split_runs` of every object, of which the runs end before `stops`, that `splits`; the others as they are.

    [runs, (row, start, end, part, object)], part by part.  `rule`: neck, slack and smallest core; `rim` has the
    bounding boxes of all that are split, from `corner` (row, column) on, or is empty for none.
    """
    neck, slack_px, min_core_px = rule
    found, placed, first = np.empty((2 * len(rows), 5), dtype=np.int32), 0, 0
    for one in range(len(stops)):
        begin, first = first, stops[one]
        mine = slice(begin, first)
        if splits[one]:
            top, left = rows[begin] - corner[0], starts[mine].min() - corner[1]
            between = rim[top : rows[first - 1] - corner[0] + 1, left : ends[mine].max() - corner[1]]
            runs, part, parts = split_runs(rows[mine], starts[mine], ends[mine], neck, slack_px, between, min_core_px)
        else:
            runs, part, parts = np.empty((first - begin, 3), dtype=np.int32), np.ones(first - begin, dtype=np.int64), 1
            runs[:, 0], runs[:, 1], runs[:, 2] = rows[mine], starts[mine], ends[mine]
        if placed + len(runs) > len(found):
            more = np.empty((2 * (placed + len(runs)), 5), dtype=np.int32)
            more[:placed] = found[:placed]
            found = more
        put_part_by_part(found, placed, runs, part, parts)
        found[placed : placed + len(runs), 4] = one
        placed += len(runs)
    return found[:placed]
