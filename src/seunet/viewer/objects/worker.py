"""The process that reads objects.geojson, which may come from anywhere, and makes the index of it, piece by piece.

`python -m seunet.viewer.objects.worker LIMIT_BYTES PARENT`: one JSON line in, one JSON line out (storage/sandbox.py).
Requests: {"objects": path, "into": folder, "size": [width, height], "offset": [x, y]}, then {"go": true} until the
answer has "finished".
"""

from __future__ import annotations

import gzip
import os
import sys
from array import array
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import orjson

from seunet.errors import InputError
from seunet.storage.sandbox import confine, serve
from seunet.viewer.objects.loops import CELL_PX, box_and_center, cut_into_cells, parse_rings, pieces_of_cells

BATCH_BYTES: Final = 2 << 20
MAX_LINE_BYTES: Final = 256 << 20
MAX_OBJECTS: Final = 5_000_000
MAX_MEASURES: Final = 32
MAX_CLASSES: Final = 255
COORDINATES: Final = b'"coordinates":'
PROPERTIES: Final = b'},"properties":'
REMEDY: Final = "it was not written by `seunet segment`: make the result again"


class IndexWriter:
    """Reads features one line at a time; what is kept in memory is a row of numbers per object."""

    def __init__(self, objects: Path, into: Path, size: tuple[int, int], offset: tuple[int, int]) -> None:
        self._path, self._into, self._offset = objects, into, np.array(offset, dtype=np.float64)
        self._columns, self._rows = (max(1, -(-side // CELL_PX)) for side in size)
        self._total = max(1, objects.stat().st_size)
        self._raw = objects.open("rb")
        self._lines: IO[bytes] = gzip.GzipFile(fileobj=self._raw) if objects.suffix == ".gz" else self._raw  # type: ignore[assignment]
        # Features are looked up by their place: a zipped file is unpacked on the way.
        self._copy = (into / "objects.geojson").open("wb") if objects.suffix == ".gz" else None
        self._outlines = (into / "outlines.bin").open("wb")
        self._at, self._line_number, self._written, self._ended = 0, 0, 0, False
        self._classes: dict[str, list[int]] = {}
        self._measures: list[str] = []
        self._class_of = array("B")
        self._places, self._boxes, self._values = array("q"), array("f"), array("f")
        self._cells: list[Any] = []
        self._points, self._stops = np.empty((1 << 16, 2)), np.empty(1 << 15, np.int64)

    def step(self) -> dict[str, Any]:
        """Take in some megabytes; how far it is, or what the index holds."""
        rings: list[Any] = []
        owners: list[int] = []
        begun = self._at
        while self._at - begun < BATCH_BYTES and not self._ended:
            line = self._lines.readline(MAX_LINE_BYTES)
            if not line:
                self._ended = True
                break
            if self._copy is not None:
                self._copy.write(line)
            self._line_number += 1
            self._take(line, rings, owners)
            self._at += len(line)
        self._flush(rings, owners)
        if not self._ended:
            return {"share": min(self._raw.tell() / self._total, 1.0), "objects": len(self._class_of)}
        return {"finished": True, "objects": len(self._class_of), **self._finish()}

    def _take(self, line: bytes, rings: list[Any], owners: list[int]) -> None:
        if not line.startswith(b'{"type":"Feature","'):
            return
        start, end = line.find(COORDINATES), line.find(PROPERTIES)
        try:
            if not 0 < start < end:
                raise ValueError
            properties = orjson.loads(line[end + len(PROPERTIES) :].rstrip(b",\r\n")[:-1])
            name = properties["classification"]["name"]
            code = self._code(str(name), properties["classification"].get("color"))
            values = self._row(properties.get("measurements", {}))
            found, ends = self._rings(line[start + len(COORDINATES) : end])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{self._path.name} line {self._line_number}: is not an outline; {REMEDY}") from None
        number = len(self._class_of)
        if number >= MAX_OBJECTS:
            raise InputError(f"{self._path.name}: more than {MAX_OBJECTS:,} objects; they are too many to look at")
        self._class_of.append(code)
        self._places.extend((self._at, len(line)))
        self._boxes.extend(box_and_center(found, ends))
        self._values.extend(values)
        rings.append((found, ends))
        owners.append(number)

    def _code(self, name: str, color: Any) -> int:
        if name not in self._classes:
            if len(self._classes) >= MAX_CLASSES:
                raise ValueError
            rgb = [min(max(int(value), 0), 255) for value in color] if isinstance(color, list) else [128] * 3
            self._classes[name] = (rgb + [128] * 3)[:3]
        return list(self._classes).index(name) if len(self._classes) > 1 else 0

    def _row(self, measured: dict[str, Any]) -> list[float]:
        new = [name for name in measured if name not in self._measures]
        if new and self._class_of:
            raise ValueError  # all objects of a result have the same measurements
        self._measures = (self._measures + new)[:MAX_MEASURES]
        return [float(measured.get(name, np.nan)) for name in self._measures]

    def _rings(self, text: bytes) -> tuple[Any, Any]:
        if len(text) // 2 > len(self._points):
            self._points, self._stops = np.empty((len(text), 2)), np.empty(len(text) // 2, np.int64)
        points, rings = parse_rings(np.frombuffer(text, np.uint8), self._points, self._stops)
        if points < 1 or rings < 1:
            raise ValueError
        return self._points[:points] + self._offset, self._stops[:rings].copy()

    def _flush(self, rings: list[Any], owners: list[int]) -> None:
        """Append the pieces of these objects to the file, cell by cell."""
        if not rings:
            return
        points = np.concatenate([found for found, _ in rings])
        shifts = np.cumsum([0, *(len(found) for found, _ in rings[:-1])])
        stops = np.concatenate([ends + shift for (_, ends), shift in zip(rings, shifts, strict=True)])
        object_of = np.repeat(np.array(owners, np.int64), [len(ends) for _, ends in rings])
        class_of = np.frombuffer(self._class_of, np.uint8)[object_of].astype(np.int16)
        ends, ring_of, cell_of = cut_into_cells(points, stops, self._columns, self._rows)
        order = np.argsort(cell_of, kind="stable")
        numbers, cells = pieces_of_cells(
            ends[order], ring_of[order], cell_of[order], object_of, class_of, self._columns
        )
        self._outlines.write(numbers.tobytes())
        cells[:, 1:] = (cells[:, 1:] + self._written) * 2
        self._cells.append(cells)
        self._written += len(numbers)

    def _finish(self) -> dict[str, Any]:
        for file in (self._outlines, self._copy, self._raw):
            if file is not None:
                file.close()
        count = len(self._class_of)
        arrays: dict[str, Any] = {
            "classes": np.frombuffer(self._class_of, np.uint8),
            "places": np.frombuffer(self._places, np.int64).reshape(count, 2),
            "boxes": np.frombuffer(self._boxes, np.float32).reshape(count, 6),
            "measures": np.frombuffer(self._values, np.float32).reshape(count, len(self._measures)),
            "cells": np.concatenate([np.zeros((0, 3), np.int64), *self._cells]),
        }
        for name, values in arrays.items():
            np.save(self._into / f"{name}.npy", values, allow_pickle=False)
        return {"classes": self._classes, "measures": self._measures, "columns": self._columns, "rows": self._rows}


def main() -> None:
    """Entry point."""
    replies = confine(int(sys.argv[1]))
    with suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(5)  # who looks meanwhile comes first
    writer: list[IndexWriter] = []

    def answer(line: bytes) -> dict[str, Any]:
        request = orjson.loads(line)
        try:
            if "objects" in request:
                places = Path(request["objects"]), Path(request["into"])
                writer[:] = [IndexWriter(*places, tuple(request["size"]), tuple(request["offset"]))]
                return {}
            return writer[0].step()
        except InputError as error:
            return {"fault": str(error)}
        except (OSError, EOFError) as error:
            return {"fault": f"{writer[0]._path.name if writer else 'objects'}: cannot be read ({error})"}
        except MemoryError:
            return {"fault": "the outlines take more memory than a reader may use"}

    serve(replies, answer)


if __name__ == "__main__":
    main()
