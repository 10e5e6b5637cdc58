"""A finished label plane → its objects, band after band.

An object is what hangs together through pixel edges (4-connected) and has one class.  Memory holds one band of rows
and the objects that reach its lower edge; the result is the same for any height of the bands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.label_plane import Labels

BAND_PIXELS: Final = 1 << 24
MAX_ROWS: Final = 8192
"""An object of so many rows is cut there and counted as cut."""
MAX_OPEN_RUNS: Final = 2_000_000
"""When the objects that reach a row have more runs together, all are cut there: what keeps memory bounded."""

NECK: Final = 0.85
SLACK_PX: Final = 1.0
"""Chosen on the training images of MoNuSeg (results/benchmarks/splitting.json)."""
MIN_CORE_PX: Final = 12
"""What is left of an object between rims and is smaller is part of a neighbour, not an object."""
NOWHERE: Final = np.zeros((0, 0), dtype=np.uint8)
MAX_SPLIT_PX: Final = 1 << 22
"""Objects with a larger bounding box are no cluster of nuclei and stay whole."""

Runs = NDArray[np.int32]
Ring = NDArray[np.int32]


class Object(NamedTuple):
    """One object, in working pixels."""

    code: int
    runs: Runs
    """[(row, start, end), runs] in reading order: the pixels start ≤ column < end of a row."""
    cut: bool
    """Whether it goes on beyond what memory is spent on; see MAX_ROWS."""

    @property
    def area_px(self) -> int:
        return int((self.runs[2] - self.runs[1]).sum())

    def rings(self) -> list[Ring]:
        """The outline along pixel edges, [corners, (x, y)] without repeating the first; the outer ring, then holes."""
        from seunet.results.outlines import trace_rings

        points, stops = trace_rings(*self.runs)
        return np.split(points, stops[:-1])


@dataclass
class Tally:
    """What was met on the way; `objects` fills it."""

    pixels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, dtype=np.int64))
    """Pixels of each code, objects or not."""
    objects: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, dtype=np.int64))
    """Objects of each code."""
    cut: int = 0
    """Objects that were cut for being too large."""
    too_small: int = 0
    """Objects left out for being smaller than asked for."""
    too_small_px: int = 0


def objects(
    plane: Labels,
    frame: Frame,
    *,
    split: bool = True,
    min_area_px: int = 1,
    tally: Tally | None = None,
    band_rows: int | None = None,
    rim: Labels | None = None,
) -> Iterator[Object]:
    """The objects of a plane in the order of their last pixels; parts of a split one in the order of their first.

    Args:
        split: separate touching nuclei where they narrow, in classes that are counted (not in `frame.regions`).
        min_area_px: smaller objects, and smaller parts of split ones, are left out and counted in `tally`.
        band_rows: rows read at once; changes the memory, not the result.
        rim: a plane that is not 0 where touching objects meet: they are parted along it before necks are looked for.
    """
    found = Tally() if tally is None else tally
    rows = max(1, BAND_PIXELS // max(plane.width_px, 1)) if band_rows is None else band_rows
    for code, runs, cut in _whole_objects(plane, frame, rows, found):
        extent_px = int(runs[0, -1] - runs[0, 0] + 1) * int(runs[2].max() - runs[1].min())
        splits = split and code not in frame.regions and extent_px <= MAX_SPLIT_PX
        for part in _parts(runs, rim) if splits else [runs]:
            one = Object(code, part, cut)
            area = one.area_px
            if area < min_area_px:
                found.too_small += 1
                found.too_small_px += area
                continue
            found.objects[code] += 1
            found.cut += cut
            yield one


class _Open(NamedTuple):
    """Runs in reading order, with the class of each and whether its object was cut before."""

    runs: Runs
    codes: NDArray[np.uint8]
    cut: NDArray[np.bool_]


def _whole_objects(plane: Labels, frame: Frame, band_rows: int, tally: Tally) -> Iterator[Object]:
    """Connected objects in the order of their last pixels."""
    from seunet.results.components import link_runs

    wanted = np.zeros(256, dtype=np.bool_)
    wanted[list(frame.object_codes)] = True
    rest = _Open(np.zeros((3, 0), np.int32), np.zeros(0, np.uint8), np.zeros(0, np.bool_))
    for top in range(0, plane.height_px, band_rows):
        band = plane.read(top, 0, min(band_rows, plane.height_px - top), plane.width_px)
        bottom = top + band.shape[0]
        runs, codes = _runs(band, top)
        _count(tally, codes, runs, frame)
        kept = wanted[codes]
        runs = np.concatenate([rest.runs, runs.compress(kept, axis=1)], axis=1)
        codes = np.concatenate([rest.codes, codes[kept]])
        before = np.concatenate([rest.cut, np.zeros(int(kept.sum()), np.bool_)])
        roots, cut = link_runs(*runs, codes, before, MAX_ROWS, MAX_OPEN_RUNS)
        unfinished = np.zeros(len(roots), dtype=np.bool_)
        if bottom < plane.height_px:
            unfinished[roots[runs[0] == bottom - 1]] = True
            unfinished = unfinished[roots]
        rest = _Open(runs.compress(unfinished, axis=1), codes[unfinished], cut[unfinished])
        done = ~unfinished
        yield from _grouped(runs.compress(done, axis=1), codes[done], cut[done], roots[done])


def _runs(band: NDArray[np.uint8], top: int) -> tuple[Runs, NDArray[np.uint8]]:
    """All runs of a band, whatever their code."""
    height, width = band.shape
    begins = np.ones(band.shape, dtype=np.bool_)
    np.not_equal(band[:, 1:], band[:, :-1], out=begins[:, 1:])
    at = np.flatnonzero(begins)
    row, start = np.divmod(at, width)
    length = np.diff(at, append=height * width)
    return np.stack([row + top, start, start + length]).astype(np.int32), band.ravel()[at]


def _count(tally: Tally, codes: NDArray[np.uint8], runs: Runs, frame: Frame) -> None:
    pixels = np.bincount(codes, weights=runs[2] - runs[1], minlength=256).astype(np.int64)
    strange = [code for code in np.flatnonzero(pixels) if len(frame.class_names) <= code != NOT_ANALYSED]
    if strange:
        raise InputError(
            f"the label plane holds code {strange[0]} and there are {len(frame.class_names)} classes; "
            "it was made by another model: start again with --overwrite"
        )
    tally.pixels += pixels


def _grouped(
    runs: Runs, codes: NDArray[np.uint8], cut: NDArray[np.bool_], roots: NDArray[np.int64]
) -> Iterator[Object]:
    """One object for each root, in the order of their last runs."""
    if not len(roots):
        return
    last = np.zeros(int(roots.max()) + 1, dtype=np.int64)
    np.maximum.at(last, roots, np.arange(len(roots)))
    order = np.argsort(last[roots], kind="stable")
    runs, codes, cut, roots = runs.take(order, axis=1), codes[order], cut[order], roots[order]
    stops = np.append(np.flatnonzero(np.diff(roots)) + 1, len(roots)).tolist()
    start = 0
    for stop in stops:
        yield Object(int(codes[start]), runs[:, start:stop], bool(cut[start]))
        start = stop


def _parts(runs: Runs, rim: Labels | None) -> list[Runs]:
    """The runs of the parts of a split object; its own if it has neither rim nor neck."""
    from seunet.results.splitting import split_runs

    top, left = int(runs[0, 0]), int(runs[1].min())
    height, width = int(runs[0, -1]) - top + 1, int(runs[2].max()) - left
    between = NOWHERE if rim is None else np.array(rim.read(top, left, height, width))
    parted, part, count = split_runs(*runs, NECK, SLACK_PX, between, MIN_CORE_PX)
    if count == 1:
        return [runs]
    order = np.argsort(part, kind="stable")
    columns = np.ascontiguousarray(parted[order].T)
    return np.split(columns, np.flatnonzero(np.diff(part[order])) + 1, axis=1)
