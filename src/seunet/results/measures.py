"""What is measured of an object: its size and shape, and means of planes over its pixels; as GeoJSON and as a table."""

from __future__ import annotations

import csv
import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.kernels.compiling.first_call import compiled
from seunet.results.counts import short
from seunet.results.find_objects import Object, Runs
from seunet.results.frame import Frame
from seunet.results.label_plane import Labels

BLOCK_BYTES: Final = 2 << 20
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


@compiled
def sum_over_runs(block: Any, top: int, rows: Any, starts: Any, ends: Any) -> int:
    """The sum of a block of rows, the first of which is `top`, over the pixels of runs."""
    total = 0
    for run in range(len(rows)):
        for column in range(starts[run], ends[run]):
            total += block[rows[run] - top, column]
    return total


class MeasuredPlane(NamedTuple):
    """A plane of bytes that is averaged over objects, and how many units of it are 1."""

    plane: Labels
    per_one: float


class ObjectMeans:
    """Means of planes over one object after the other, which come by their last rows: only rows near by are held."""

    def __init__(self, planes: Mapping[str, MeasuredPlane]) -> None:
        self._planes = planes
        self._blocks: OrderedDict[tuple[str, int], NDArray[np.uint8]] = OrderedDict()

    def of(self, one: Object) -> dict[str, float]:
        """The mean of each plane, in its unit."""
        area = one.area_px
        return {name: self._sum(name, one.runs) / (area * each.per_one) for name, each in self._planes.items()}

    def _sum(self, name: str, runs: Runs) -> int:
        rows, starts, ends = runs
        step = max(1, BLOCK_BYTES // max(self._planes[name].plane.width_px, 1))
        total = 0
        for number in range(int(rows[0]) // step, int(rows[-1]) // step + 1):
            first, last = np.searchsorted(rows, (number * step, (number + 1) * step))
            part = slice(int(first), int(last))
            block = self._block(name, number, step)
            total += int(sum_over_runs(block, number * step, rows[part], starts[part], ends[part]))
        return total

    def _block(self, name: str, number: int, step: int) -> NDArray[np.uint8]:
        key = (name, number)
        if key not in self._blocks:
            plane = self._planes[name].plane
            rows = min(step, plane.height_px - number * step)
            self._blocks[key] = plane.read(number * step, 0, rows, plane.width_px)
            while len(self._blocks) > KEPT_BLOCKS * len(self._planes):
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return self._blocks[key]


class Measures(NamedTuple):
    """Of one object, in working pixels; means in their units."""

    area_px: int
    circularity: float
    means: dict[str, float]


def diameter(area: float) -> float:
    """Of the disc with this area."""
    return 2 * math.sqrt(area / math.pi)


def geojson_measures(measured: Measures, frame: Frame) -> str:
    """The flat JSON object that QuPath shows as measurements."""
    area, area_um2 = frame.area_level0(measured.area_px), frame.area_um2(measured.area_px)
    values = {"Area px^2": short(area, 2)}
    if area_um2 is not None:
        values |= {"Area µm^2": short(area_um2, 2), "Diameter µm": short(diameter(area_um2), 2)}
    else:
        values["Diameter px"] = short(diameter(area), 2)
    values["Circularity"] = short(measured.circularity, 3)
    values |= {name: short(value, 3) for name, value in measured.means.items()}
    return "{" + ",".join(f'"{name}":{value}' for name, value in values.items()) + "}"


class ObjectTable:
    """objects.csv, written row by row."""

    def __init__(self, file: IO[str], frame: Frame) -> None:
        self._frame, self._writer = frame, csv.writer(file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(self, identity: str, one: Object, measured: Measures) -> None:
        """One object.  Its place is the centre of its area, in the coordinates of objects.geojson."""
        frame, (rows, starts, ends) = self._frame, one.runs.astype(np.float64)
        lengths = ends - starts
        x = float((lengths * (starts + ends)).sum()) / 2 / measured.area_px * frame.scale_to_level0 - frame.offset_x
        y = float((lengths * (rows + 0.5)).sum()) / measured.area_px * frame.scale_to_level0 - frame.offset_y
        area, area_um2 = frame.area_level0(measured.area_px), frame.area_um2(measured.area_px)
        in_um = ("", "") if area_um2 is None else (short(area_um2, 2), short(diameter(area_um2), 2))
        means = [
            short(measured.means[name], 3) if name in measured.means else "" for name in (HAEMATOXYLIN, CONFIDENCE)
        ]
        self._writer.writerow(
            [
                identity,
                frame.class_names[one.code],
                *(short(x, 1), short(y, 1)),
                *(short(area, 2), in_um[0], short(diameter(area), 2), in_um[1]),
                *(short(measured.circularity, 3), *means),
            ]
        )
