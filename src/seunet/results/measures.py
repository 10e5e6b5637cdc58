"""What is measured of an object: its size and shape, and means of planes over its pixels; as GeoJSON and as a table."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.kernels.compiling.first_call import compiled
from seunet.results.counts import short
from seunet.results.find_objects import Objects
from seunet.results.frame import Frame
from seunet.results.label_plane import Labels, read_only

BLOCK_BYTES: Final = 2 << 20
BLOCK_ROWS: Final = 256
"""Of a block, at most: planes are read while their lower rows are still being made."""
KEPT_BLOCKS: Final = 24
HAEMATOXYLIN: Final = "Haematoxylin OD mean"
CONFIDENCE: Final = "Confidence"
COLUMNS: Final = (
    "id",
    "class",
    "x_px",
    "y_px",
    "area_px",
    "area_um2",
    "diameter_px",
    "diameter_um",
    "circularity",
    "haematoxylin_od",
    "confidence",
)

Numbers = NDArray[Any]


@compiled
def add_over_runs(totals: Any, block: Any, top: int, rows: Any, starts: Any, ends: Any, stops: Any) -> None:
    """Add to the total of each object, whose runs end before `stops`, its sum of a block of rows from `top` on."""
    one = 0
    for run in range(len(rows)):
        while run >= stops[one]:
            one += 1
        row = rows[run] - top
        if 0 <= row < len(block):
            for column in range(starts[run], ends[run]):
                totals[one] += block[row, column]


@compiled
def moments(rows: Any, starts: Any, ends: Any, stops: Any) -> Any:
    """[objects, (x, y)]: twice the sums of the coordinates of each object's pixels, of their middles."""
    found = np.zeros((len(stops), 2), dtype=np.int64)
    one = 0
    for run in range(len(rows)):
        while run >= stops[one]:
            one += 1
        length = np.int64(ends[run] - starts[run])
        found[one, 0] += length * (starts[run] + ends[run])
        found[one, 1] += length * (2 * rows[run] + 1)
    return found


class MeasuredPlane(NamedTuple):
    """A plane of bytes that is averaged over objects, and how many units of it are 1."""

    plane: Labels
    per_one: float


class ObjectMeans:
    """Means of planes over one object after the other, which come by their last rows: only rows near by are held."""

    def __init__(self, planes: Mapping[str, MeasuredPlane]) -> None:
        self._planes = planes
        self._blocks: OrderedDict[tuple[str, int], NDArray[np.uint8]] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._planes)

    def of(self, found: Objects) -> NDArray[np.float64]:
        """[objects, planes]: the mean of each plane over each object, in its unit."""
        areas = found.areas_px
        means = [self._sums(name, found) / (areas * each.per_one) for name, each in self._planes.items()]
        return np.stack(means, axis=1) if means else np.zeros((len(found), 0))

    def _sums(self, name: str, found: Objects) -> NDArray[np.int64]:
        rows = found.runs[0]
        step = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(self._planes[name].plane.width_px, 1)))
        totals = np.zeros(len(found), dtype=np.int64)
        for number in np.unique(rows // step).tolist():
            add_over_runs(totals, self._block(name, number, step), number * step, *found.runs, found.stops)
        return totals

    def _block(self, name: str, number: int, step: int) -> NDArray[np.uint8]:
        key = (name, number)
        if key not in self._blocks:
            plane = self._planes[name].plane
            rows = min(step, plane.height_px - number * step)
            self._blocks[key] = read_only(plane.read(number * step, 0, rows, plane.width_px))
            while len(self._blocks) > KEPT_BLOCKS * len(self._planes):
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return self._blocks[key]


@dataclass(frozen=True)
class Measures:
    """Of several objects: a number each, in pixels of the slide where nothing else is said."""

    x_px: Numbers
    y_px: Numbers
    """The centre of the area, in the coordinates of objects.geojson."""
    area_px: Numbers
    diameter_px: Numbers
    area_um2: Numbers | None
    diameter_um: Numbers | None
    circularity: Numbers
    means: dict[str, Numbers]


def measured(found: Objects, lengths_px: Numbers, frame: Frame, means: ObjectMeans | None) -> Measures:
    """What is measured of objects whose outlines have these lengths, in working pixels."""
    areas = found.areas_px
    x, y = (moments(*found.runs, found.stops) / 2 / areas[:, None] * frame.scale_to_level0).T
    area, um2 = areas * frame.area_level0(1), frame.area_um2(1)
    area_um2 = None if um2 is None else areas * um2
    return Measures(
        x - frame.offset_x,
        y - frame.offset_y,
        area,
        diameter(area),
        area_um2,
        None if area_um2 is None else diameter(area_um2),
        circularity(areas, lengths_px),
        {} if means is None else dict(zip(means.names, means.of(found).T, strict=True)),
    )


def diameter(area: Numbers) -> Numbers:
    """Of the disc with this area."""
    return 2 * np.sqrt(area / math.pi)


def circularity(area: Numbers, length: Numbers) -> Numbers:
    """4π · area / length²: 1 for a disc, less for anything else; what pixels feign beyond that is cut off."""
    found: Numbers = np.minimum(1.0, 4 * math.pi * area / length**2)
    return found


def geojson_measures(of: Measures) -> list[bytes]:
    """The flat JSON objects that QuPath shows as measurements."""
    columns = {"Area px^2": (of.area_px, 2)}
    if of.area_um2 is not None and of.diameter_um is not None:
        columns |= {"Area µm^2": (of.area_um2, 2), "Diameter µm": (of.diameter_um, 2)}
    else:
        columns["Diameter px"] = of.diameter_px, 2
    columns["Circularity"] = of.circularity, 3
    columns |= {name: (values, 3) for name, values in of.means.items()}
    words = [f'{"," if number else "{"}"{name}":' for number, name in enumerate(columns)]
    return rows_of_numbers([*words, "}"], list(columns.values()))


def table_rows(of: Measures) -> list[bytes]:
    """The columns of objects.csv after `class`, with the end of the line."""
    columns = {
        "x_px": (of.x_px, 1),
        "y_px": (of.y_px, 1),
        "area_px": (of.area_px, 2),
        "area_um2": (of.area_um2, 2),
        "diameter_px": (of.diameter_px, 2),
        "diameter_um": (of.diameter_um, 2),
        "circularity": (of.circularity, 3),
        "haematoxylin_od": (of.means.get(HAEMATOXYLIN), 3),
        "confidence": (of.means.get(CONFIDENCE), 3),
    }
    words, known = [""], []
    for values, decimals in columns.values():
        words[-1] += ","
        if values is not None:
            known.append((values, decimals))
            words.append("")
    words[-1] += "\n"
    return rows_of_numbers(words, known)


def rows_of_numbers(words: Sequence[str], columns: Sequence[tuple[Numbers, int]]) -> list[bytes]:
    """Rows of a word, a number rounded to its decimals and written as `short` does, a word, … and a last word."""
    from seunet.results.texts import numbers_between, pieces

    encoded = [word.encode() for word in words]
    values, decimals = np.stack([values for values, _ in columns], axis=1), [places for _, places in columns]
    word_stops = np.cumsum([len(word) for word in encoded])
    text, stops, doubtful = numbers_between(
        np.frombuffer(b"".join(encoded), np.uint8), word_stops, values, np.array(decimals)
    )
    rows = pieces(text, stops)
    for row in np.flatnonzero(doubtful).tolist():
        numbers = (short(value, places).encode() for value, places in zip(values[row].tolist(), decimals, strict=True))
        rows[row] = b"".join(part for pair in zip(encoded, numbers, strict=False) for part in pair) + encoded[-1]
    return rows
