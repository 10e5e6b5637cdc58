"""A finished label plane → its objects, band after band.

An object is what hangs together through pixel edges (4-connected) and has one class.  Memory holds one band of rows
and the objects that reach its lower edge; the result is the same for any height of the bands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.models.object_rule import MIN_CORE_PX
from seunet.models.object_rule import NECK as NECK
from seunet.models.object_rule import SLACK_PX as SLACK_PX
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.label_plane import Labels, read_only

BAND_PIXELS: Final = 1 << 24
MAX_ROWS: Final = 8192
"""An object of so many rows is cut there and counted as cut."""
MAX_OPEN_RUNS: Final = 2_000_000
"""When the objects that reach a row have more runs together, all are cut there: what keeps memory bounded."""

NOWHERE: Final = np.zeros((0, 0), dtype=np.uint8)
GATHERED_RUNS: Final = 1 << 13
"""Of objects that are handed to a compiled loop at a time."""
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


@dataclass(frozen=True)
class Objects:
    """Several objects, whose runs stand one after the other: what compiled loops take."""

    codes: NDArray[np.uint8]
    runs: Runs
    stops: NDArray[np.int64]
    """Before which the runs of each end."""
    cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Object]:
        listed = (each.tolist() for each in (self.codes, self.begins, self.stops, self.cut))
        return (Object(code, self.runs[:, begin:stop], cut) for code, begin, stop, cut in zip(*listed, strict=True))

    def some(self, first: int, stop: int) -> Objects:
        """Those from number `first` on, before number `stop`."""
        begin, part = int(self.begins[first]), slice(first, stop)
        runs = self.runs[:, begin : int(self.stops[stop - 1])]
        return Objects(self.codes[part], runs, self.stops[part] - begin, self.cut[part])

    @property
    def begins(self) -> NDArray[np.int64]:
        """With which the runs of each begin."""
        return np.concatenate([np.zeros(1, np.int64), self.stops[:-1]])

    @property
    def areas_px(self) -> NDArray[np.int64]:
        return np.add.reduceat((self.runs[2] - self.runs[1]).astype(np.int64), self.begins)


def gathered(found: Iterable[Object]) -> Iterator[Objects]:
    """The same objects, as many at a time as have few runs together: at least one."""
    waiting: list[Object] = []
    runs = 0
    for one in found:
        waiting.append(one)
        runs += one.runs.shape[1]
        if runs >= GATHERED_RUNS:
            yield _together(waiting)
            waiting, runs = [], 0
    if waiting:
        yield _together(waiting)


def _together(found: list[Object]) -> Objects:
    codes, runs, cut = zip(*found, strict=True)
    stops = np.cumsum([each.shape[1] for each in runs], dtype=np.int64)
    return Objects(np.array(codes, np.uint8), np.concatenate(runs, axis=1), stops, np.array(cut, np.bool_))


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
    for group in gathered(_whole_objects(plane, frame, rows, found)):
        parts = _parted(group, frame, rim) if split else group
        areas = parts.areas_px
        small = areas < min_area_px
        found.too_small += int(small.sum())
        found.too_small_px += int(areas[small].sum())
        found.objects += np.bincount(parts.codes[~small], minlength=256)
        found.cut += int(parts.cut[~small].sum())
        yield from itertools.compress(parts, (~small).tolist())


class _Open(NamedTuple):
    """Runs in reading order, with the class of each and whether its object was cut before."""

    runs: Runs
    codes: NDArray[np.uint8]
    cut: NDArray[np.bool_]


def _whole_objects(plane: Labels, frame: Frame, band_rows: int, tally: Tally) -> Iterator[Object]:
    """Connected objects in the order of their last pixels."""
    from seunet.results.components import link_runs, runs_in

    wanted = np.zeros(256, dtype=np.bool_)
    wanted[list(frame.object_codes)] = True
    rest = _Open(np.zeros((3, 0), np.int32), np.zeros(0, np.uint8), np.zeros(0, np.bool_))
    for top in range(0, plane.height_px, band_rows):
        band = plane.read(top, 0, min(band_rows, plane.height_px - top), plane.width_px)
        bottom = top + band.shape[0]
        runs, codes = runs_in(read_only(band), top)
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


def _parted(found: Objects, frame: Frame, rim: Labels | None) -> Objects:
    """The parts of the objects that split at rims and necks, and the others as they are."""
    from seunet.results.splitting import split_objects

    (rows, starts, ends), begins = found.runs, found.begins
    top, bottom = rows[begins], rows[found.stops - 1] + 1
    left, right = np.minimum.reduceat(starts, begins), np.maximum.reduceat(ends, begins)
    splits = (bottom - top).astype(np.int64) * (right - left) <= MAX_SPLIT_PX
    splits &= ~np.isin(found.codes, list(frame.regions))
    corner, between = (0, 0), NOWHERE
    if rim is not None and splits.any():
        corner = int(top[splits].min()), int(left[splits].min())
        height, width = int(bottom[splits].max()) - corner[0], int(right[splits].max()) - corner[1]
        if height * width > MAX_SPLIT_PX and len(found) > 1:
            halves = found.some(0, len(found) // 2), found.some(len(found) // 2, len(found))
            return _together([one for half in halves for one in _parted(half, frame, rim)])
        between = np.array(rim.read(*corner, height, width))
    parted = split_objects(rows, starts, ends, found.stops, splits, (NECK, SLACK_PX, MIN_CORE_PX), between, corner)
    last = np.append(np.flatnonzero(np.diff(parted[:, 3]) | np.diff(parted[:, 4])), len(parted) - 1)
    source = parted[last, 4]
    return Objects(found.codes[source], np.ascontiguousarray(parted[:, :3].T), last + 1, found.cut[source])
