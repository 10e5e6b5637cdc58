"""Objects → GeoJSON that QuPath opens, one after the other."""

from __future__ import annotations

import gzip
import io
import json
import math
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from seunet.results.find_objects import Object
from seunet.results.frame import MIN_SCALE, Frame
from seunet.results.measures import Measures, ObjectMeans, ObjectTable, geojson_measures
from seunet.storage.atomic import atomic_path

ISOTROPIC: Final = math.pi / 8 * (1 + math.sqrt(2))
"""Mean of true length / length along eight directions, over all directions of a line."""

NAMESPACE: Final = uuid.UUID("5e0e7000-0000-5000-8000-5e04e7000000")
"""Of the ids, which are made from class and outline: the same object has the same id in every run."""

SMOOTH_AREA_PX: Final = 125
"""Cutting the corners takes half a pixel from the area for each ring: from here on at most 0.4 %, and rounding."""

BUFFER_BYTES: Final = 1 << 20
COMPRESS_LEVEL: Final = 6


def write_geojson(
    path: Path,
    found: Iterable[Object],
    frame: Frame,
    *,
    smooth: bool = False,
    means: ObjectMeans | None = None,
    table: Path | None = None,
) -> int:
    """Write a FeatureCollection, gzipped if the name ends in .gz, and return how many features it has.

    `means` adds its planes' to the measurements; `table` is a CSV file of the same objects, written beside.

    Outlines run along pixel edges: their area is that of the pixels.  With `smooth` they cut the corners of the
    pixels where that changes the area by less than half a per cent: smaller files, the same pixels.
    """
    number = 0
    with ExitStack() as stack:
        file = stack.enter_context(_opened(stack.enter_context(atomic_path(path)), path.suffix == ".gz"))
        rows = None
        if table is not None:
            rows = ObjectTable(stack.enter_context(_opened(stack.enter_context(atomic_path(table)), False)), frame)
        file.write('{"type":"FeatureCollection","features":[')
        for number, one in enumerate(found, start=1):
            file.write("\n" if number == 1 else ",\n")
            file.write(feature(one, frame, smooth=smooth, means=means, table=rows))
        file.write("\n]}\n")
    return number


def feature(
    one: Object,
    frame: Frame,
    *,
    smooth: bool = False,
    means: ObjectMeans | None = None,
    table: ObjectTable | None = None,
) -> str:
    """One object as a GeoJSON feature and, where there is one, as a row of the table."""
    from seunet.results.outlines import coordinates_text, edges_and_corners, through_middles, trace_rings

    area_px = one.area_px
    points, stops = trace_rings(*one.runs)
    length_px = outline_length(*edges_and_corners(points, stops))
    scale = frame.scale_to_level0
    if smooth and area_px >= SMOOTH_AREA_PX * len(stops) and scale >= 2 * MIN_SCALE:
        points, stops = through_middles(points, stops)
        scale /= 2
    coordinates = coordinates_text(points, stops, scale, frame.offset_x, frame.offset_y)
    name = frame.class_names[one.code]
    identity = uuid.uuid5(NAMESPACE, f"{name} {coordinates}")
    measured = Measures(area_px, circularity(area_px, length_px), {} if means is None else means.of(one))
    if table is not None:
        table.add(str(identity), one, measured)
    return (
        f'{{"type":"Feature","id":"{identity}","geometry":{{"type":"Polygon","coordinates":{coordinates}}},'
        f'"properties":{{{_class_text(one.code, frame)},"measurements":{geojson_measures(measured, frame)}}}}}'
    )


@lru_cache(maxsize=256)
def _class_text(code: int, frame: Frame) -> str:
    kind = "annotation" if code in frame.regions else "detection"
    name = json.dumps(frame.class_names[code], ensure_ascii=False)
    red, green, blue = frame.class_colors[code]
    return f'"objectType":"{kind}","classification":{{"name":{name},"color":[{red},{green},{blue}]}}'


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


def outline_length(edges: int, corners: int) -> float:
    """The length in pixels of the smooth outline that a ring of pixel edges with so many corners stands for.

    Going through the middles of the edges, two edges in line give length 1 and two around a corner √½: a line along
    eight directions, too long by a factor that depends on its direction and is 1/0.948 in the mean.
    """
    return ISOTROPIC * ((edges - corners) + corners * math.sqrt(0.5))


def circularity(area: float, length: float) -> float:
    """4π · area / length²: 1 for a disc, less for anything else; what pixels feign beyond that is cut off."""
    return min(1.0, 4 * math.pi * area / length**2)
