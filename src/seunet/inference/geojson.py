"""Objects → GeoJSON that QuPath opens, one after the other."""

from __future__ import annotations

import gzip
import io
import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from seunet.atomic import atomic_path
from seunet.inference.frame import Frame
from seunet.inference.objects import Object
from seunet.maths.polygons import circularity, outline_length, without_corners

NAMESPACE: Final = uuid.UUID("5e0e7000-0000-5000-8000-5e04e7000000")
"""Of the ids, which are made from class and outline: the same object has the same id in every run."""

BUFFER_BYTES: Final = 1 << 20
COMPRESS_LEVEL: Final = 6


def write_geojson(path: Path, found: Iterable[Object], frame: Frame, *, smooth: bool = False) -> int:
    """Write a FeatureCollection, gzipped if the name ends in .gz, and return how many features it has.

    Outlines run along pixel edges: their area is that of the pixels.  With `smooth` they cut the corners of the
    pixels where that changes the area by less than half a per cent: smaller files, the same pixels.
    """
    number = 0
    with atomic_path(path) as part, _opened(part, path.suffix == ".gz") as file:
        file.write('{"type":"FeatureCollection","features":[')
        for number, one in enumerate(found, start=1):
            file.write("\n" if number == 1 else ",\n")
            file.write(feature(one, frame, smooth=smooth))
        file.write("\n]}\n")
    return number


def feature(one: Object, frame: Frame, *, smooth: bool = False) -> str:
    """One object as a GeoJSON feature."""
    rings = one.rings()
    drawn = without_corners(rings) if smooth else rings
    coordinates = _compact([_closed(frame.level0_points(ring)) for ring in drawn])
    name, color = frame.class_names[one.code], list(frame.class_colors[one.code])
    identity = uuid.uuid5(NAMESPACE, f"{name} {coordinates}")
    properties = {
        "objectType": "annotation" if one.code in frame.regions else "detection",
        "classification": {"name": name, "color": color},
        "measurements": _measurements(one.area_px, outline_length(rings), frame),
    }
    return (
        f'{{"type":"Feature","id":"{identity}",'
        f'"geometry":{{"type":"Polygon","coordinates":{coordinates}}},"properties":{_compact(properties)}}}'
    )


def _measurements(area_px: int, length_px: float, frame: Frame) -> dict[str, float]:
    measured = {"Area px^2": _number(frame.area_level0(area_px), 2)}
    area_um2 = frame.area_um2(area_px)
    if area_um2 is not None:
        measured["Area µm^2"] = _number(area_um2, 2)
    return measured | {"Circularity": _number(circularity(area_px, length_px), 3)}


def _closed(points: NDArray[np.float64]) -> list[list[float]]:
    """The ring with its first point repeated, as GeoJSON wants it; whole numbers without a point."""
    ring = np.concatenate([points, points[:1]])
    whole = ring.astype(np.int64)
    return whole.tolist() if (whole == ring).all() else ring.tolist()  # type: ignore[no-any-return]


def _number(value: float, decimals: int) -> float:
    rounded = round(value, decimals)
    return int(rounded) if rounded == int(rounded) else rounded


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@contextmanager
def _opened(path: Path, zipped: bool) -> Iterator[IO[str]]:
    """A text file for writing; a zipped one without name and time, so that the same content is the same bytes."""
    with path.open("wb", buffering=BUFFER_BYTES) as raw:
        if not zipped:
            with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as text:
                yield text
            return
        with (
            gzip.GzipFile("", "wb", COMPRESS_LEVEL, raw, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
        ):
            yield text
