"""Which objects are asked for, in which order, how they are distributed, and their export."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.viewer.objects.index import Mask, ObjectIndex

BINS: Final = 48
MAX_ROWS: Final = 500
DIGITS: Final = 6


@dataclass(frozen=True)
class Filter:
    """Classes to show (None for all) and, for measurements by their number, the least and the largest value."""

    classes: tuple[int, ...] | None = None
    ranges: tuple[tuple[int, float, float], ...] = ()

    @property
    def everything(self) -> bool:
        return self.classes is None and not self.ranges


def read_filter(query: Mapping[str, str], index: ObjectIndex) -> Filter:
    """From an address: `classes=0,2` and `range=NUMBER:LOW:HIGH,…`, either end may be empty."""
    try:
        classes = tuple(int(text) for text in query["classes"].split(",") if text) if "classes" in query else None
        ranges = tuple(_range(text) for text in query.get("range", "").split(",") if text)
        if any(not 0 <= number < len(index.names) for number, _, _ in ranges):
            raise ValueError
    except ValueError:
        raise InputError("the filter is not understood; set it again") from None
    return Filter(classes, ranges)


def _range(text: str) -> tuple[int, float, float]:
    number, low, high = text.split(":")
    bounds = float(low) if low else -math.inf, float(high) if high else math.inf
    if any(math.isnan(bound) for bound in bounds):
        raise ValueError
    return int(number), *bounds


def selected(index: ObjectIndex, wanted: Filter) -> Mask:
    """[objects]: which are asked for.  An object without a measurement is in no range of it."""
    mask = np.ones(len(index), dtype=np.bool_)
    if wanted.classes is not None:
        mask &= np.isin(index.classes, wanted.classes)
    for number, low, high in wanted.ranges:
        values = index.measures[:, number]
        # Compared as they are stored: a bound that was read off the page must not leave its own object out.
        mask &= (values >= np.float32(low)) & (values <= np.float32(high))
    return mask


def ordered(index: ObjectIndex, mask: Mask, column: str, downwards: bool) -> NDArray[np.int64]:
    """Numbers of the objects of `mask` in the order of a column; what has no value comes last."""
    numbers = np.flatnonzero(mask)
    if column == "object":
        return numbers[::-1] if downwards else numbers
    keys = index.classes[numbers].astype(np.float32) if column == "class" else index.measures[numbers, int(column)]
    return numbers[np.argsort(np.where(np.isnan(keys), np.inf, -keys if downwards else keys), kind="stable")]


def table_rows(index: ObjectIndex, numbers: NDArray[np.int64]) -> list[dict[str, Any]]:
    """What the table shows of some objects."""
    names = index.class_names
    return [
        {
            "object": number,
            "class": names[index.classes[number]],
            "x": round(float(index.centers[number, 0]), 1),
            "y": round(float(index.centers[number, 1]), 1),
            "values": [plain(value) for value in index.measures[number]],
        }
        for number in numbers.tolist()
    ]


def histogram(index: ObjectIndex, mask: Mask, column: int) -> dict[str, Any]:
    """Counts of all objects and of those selected, in bins between the 0.1th and the 99.9th percentile of all."""
    values = index.measures[:, column]
    known = values[~np.isnan(values)]
    if not len(known):
        return {"edges": [], "all": [], "selected": []}
    low, high = np.percentile(known, (0.1, 99.9)).tolist()
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    counts = [np.histogram(np.clip(part, edges[0], edges[-1]), edges)[0].tolist() for part in (known, values[mask])]
    return {"edges": edges.tolist(), "all": counts[0], "selected": counts[1]}


def totals(index: ObjectIndex, mask: Mask) -> list[int]:
    """How many are selected of each class."""
    counts: list[int] = np.bincount(index.classes[mask], minlength=len(index.class_names)).tolist()
    return counts


def as_csv(index: ObjectIndex, mask: Mask) -> Iterator[bytes]:
    """A table of the selected objects, in parts."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "class", "x_px", "y_px", *index.names])
    names = index.class_names
    for count, number in enumerate(np.flatnonzero(mask).tolist()):
        center = (f"{value:.1f}" for value in index.centers[number].tolist())
        values = ["" if math.isnan(value) else f"{value:.{DIGITS}g}" for value in index.measures[number].tolist()]
        identity = json.loads(index.text(number))["id"]
        writer.writerow([identity, names[index.classes[number]], *center, *values])
        if count % 1000 == 999:
            yield _emptied(out)
    yield _emptied(out)


def as_geojson(index: ObjectIndex, mask: Mask) -> Iterator[bytes]:
    """The selected features as they stand in objects.geojson, in parts."""
    yield b'{"type":"FeatureCollection","features":['
    for count, text in enumerate(index.texts(np.flatnonzero(mask))):
        yield (b",\n" if count else b"\n") + text
    yield b"\n]}\n"


def plain(value: float) -> float | None:
    """A number as JSON has it."""
    return None if math.isnan(value) else float(f"{float(value):.{DIGITS}g}")


def _emptied(out: io.StringIO) -> bytes:
    text = out.getvalue().encode()
    out.seek(0)
    out.truncate()
    return text
