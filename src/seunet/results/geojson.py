"""Objects → GeoJSON that QuPath opens, one after the other."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from hashlib import sha1
from pathlib import Path
from typing import IO, Final

import numpy as np

from seunet.results.find_objects import Object, Objects, gathered
from seunet.results.frame import MIN_SCALE, Frame
from seunet.results.measures import COLUMNS, Numbers, ObjectMeans, geojson_measures, measured, table_rows
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
            rows = stack.enter_context(_opened(stack.enter_context(atomic_path(table)), False))
            rows.write(f"{','.join(COLUMNS)}\n".encode())
        file.write(b'{"type":"FeatureCollection","features":[')
        for group in gathered(found):
            texts, lines = features(group, frame, smooth=smooth, means=means)
            file.write(b",\n" if number else b"\n")
            file.write(b",\n".join(texts))
            if rows is not None:
                rows.write(b"".join(lines))
            number += len(group)
        file.write(b"\n]}\n")
    return number


def features(
    found: Objects, frame: Frame, *, smooth: bool = False, means: ObjectMeans | None = None
) -> tuple[list[bytes], list[bytes]]:
    """Each object as a GeoJSON feature, and as a line of the table."""
    from seunet.results.outlines import trace_objects
    from seunet.results.texts import coordinates_texts, pieces

    scale = frame.scale_to_level0
    smooth_px = SMOOTH_AREA_PX if smooth and scale >= 2 * MIN_SCALE else 0
    points, ring_stops, rings, (edges, corners), smoothed = trace_objects(*found.runs, found.stops, smooth_px)
    scales = np.where(smoothed, scale / 2, scale)
    outlines = pieces(*coordinates_texts(points, ring_stops, rings, scales, frame.offset_x, frame.offset_y))
    of = measured(found, outline_length(edges, corners), frame, means)
    texts, lines = [], []
    for code, outline, numbers, row in zip(
        found.codes.tolist(), outlines, geojson_measures(of), table_rows(of), strict=True
    ):
        name, cell, described = _class_texts(code, frame)
        identity = _identity(name + outline)
        texts.append(
            b'{"type":"Feature","id":"%b","geometry":{"type":"Polygon","coordinates":%b},"properties":{%b,"measurements":%b}}'
            % (identity, outline, described, numbers)
        )
        lines.append(b"%b,%b%b" % (identity, cell, row))
    return texts, lines


def _identity(said: bytes) -> bytes:
    """`uuid.uuid5` of these words in our namespace, without an object of that kind."""
    digest = bytearray(sha1(NAMESPACE.bytes + said, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex().encode()
    return b"-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@lru_cache(maxsize=256)
def _class_texts(code: int, frame: Frame) -> tuple[bytes, bytes, bytes]:
    """What a class is called in an id, in a cell of the table, and in a feature."""
    kind = "annotation" if code in frame.regions else "detection"
    name, (red, green, blue) = frame.class_names[code], frame.class_colors[code]
    cell = io.StringIO()
    csv.writer(cell, lineterminator="").writerow(["", name])
    quoted = json.dumps(name, ensure_ascii=False)
    described = f'"objectType":"{kind}","classification":{{"name":{quoted},"color":[{red},{green},{blue}]}}'
    return f"{name} ".encode(), cell.getvalue()[1:].encode(), described.encode()


@contextmanager
def _opened(path: Path, zipped: bool) -> Iterator[IO[bytes]]:
    """A file for writing; a zipped one without name and time, so that the same content is the same bytes."""
    with path.open("wb", buffering=BUFFER_BYTES) as raw:
        if not zipped:
            yield raw
            return
        with gzip.GzipFile("", "wb", COMPRESS_LEVEL, raw, mtime=0) as packed:
            yield packed  # type: ignore[misc]
            packed.flush()  # as earlier editions did: six bytes, and the same file


def outline_length(edges: Numbers, corners: Numbers) -> Numbers:
    """The length in pixels of the smooth outlines that rings of pixel edges with so many corners stand for.

    Going through the middles of the edges, two edges in line give length 1 and two around a corner √½: a line along
    eight directions, too long by a factor that depends on its direction and is 1/0.948 in the mean.
    """
    return ISOTROPIC * ((edges - corners) + corners * math.sqrt(0.5))
