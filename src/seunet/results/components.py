"""Runs of equal pixels → connected objects, row after row.

A run is (row, start, end): the pixels start ≤ column < end of one row.  Runs come in reading order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seunet.kernels.compiling.first_call import compiled


@compiled
def find_root(parents: Any, run: int) -> int:
    """The first run of the object that `run` belongs to; shortens the way there."""
    root = run
    while parents[root] != root:
        root = parents[root]
    while parents[run] != root:
        parents[run], run = root, parents[run]
    return root


@compiled
def join(parents: Any, counts: Any, cuts: Any, a: int, b: int) -> None:
    """Make one object of two: its root is the earlier run, so the row of a root is the top of its object."""
    a, b = min(a, b), max(a, b)
    if a != b:
        parents[b] = a
        counts[a] += counts[b]
        cuts[a] |= cuts[b]


@compiled
def link_rows(
    runs: Any, codes: Any, parents: Any, counts: Any, cuts: Any, above: int, here: int, below: int, max_rows: int
) -> None:
    """Join the runs here … below − 1 of a row with those above … here − 1 of the row before, or cut objects there."""
    rows, starts, ends = runs
    first = above
    for run in range(here, below):
        while first < here and ends[first] <= starts[run]:
            first += 1
        other = first
        while other < here and starts[other] < ends[run]:
            if codes[other] == codes[run]:
                root = find_root(parents, other)
                if rows[run] - rows[root] >= max_rows:
                    cuts[root] = True
                    cuts[find_root(parents, run)] = True
                else:
                    join(parents, counts, cuts, root, find_root(parents, run))
            other += 1


@compiled
def runs_of_row(parents: Any, counts: Any, here: int, below: int) -> int:
    """How many runs the objects have together that the runs here … below − 1 belong to."""
    total = 0
    for run in range(here, below):
        root = find_root(parents, run)
        if counts[root] > 0:
            total += counts[root]
            counts[root] = -counts[root]  # marks it as counted
    for run in range(here, below):
        root = find_root(parents, run)
        counts[root] = abs(counts[root])
    return total


@compiled
def link_runs(
    rows: Any, starts: Any, ends: Any, codes: Any, cut_before: Any, max_rows: int, max_open_runs: int
) -> tuple[Any, Any]:
    """For each run the index of the first run of its object, and whether that object was cut.

    Runs of one code that share an edge belong together.  An object of `max_rows` rows goes no further down, and when
    the objects that reach a row have more than `max_open_runs` runs together, none of them does.  What is decided at
    a row depends on the rows above alone, so it does not matter in how many pieces the rows are handed over, as long
    as all runs of the objects that reach the last row come again with the next piece (`cut_before`: theirs).
    """
    number = len(rows)
    parents, counts, cuts = np.arange(number), np.ones(number, dtype=np.int64), cut_before.copy()
    above, here, limit = 0, 0, max_rows
    while here < number:
        below = here
        while below < number and rows[below] == rows[here]:
            below += 1
        if rows[above] == rows[here] - 1:
            link_rows((rows, starts, ends), codes, parents, counts, cuts, above, here, below, limit)
        limit = 0 if runs_of_row(parents, counts, here, below) > max_open_runs else max_rows
        above, here = here, below
    for run in range(number):
        parents[run] = find_root(parents, run)
    return parents, cuts[parents]


@compiled
def runs_in(band: Any, top: int) -> tuple[Any, Any]:
    """All runs [(row, start, end), runs] of a band of rows, the first of which is `top`, and the code of each."""
    height, width = band.shape
    number = height
    for r in range(height):
        for c in range(1, width):
            number += band[r, c] != band[r, c - 1]
    runs, codes = np.empty((3, number), dtype=np.int32), np.empty(number, dtype=np.uint8)
    run = 0
    for r in range(height):
        start = 0
        for c in range(1, width + 1):
            if c == width or band[r, c] != band[r, start]:
                runs[0, run], runs[1, run], runs[2, run] = r + top, start, c
                codes[run] = band[r, start]
                run, start = run + 1, c
    return runs, codes
