"""Answers from the index of a result's objects: what lies in a cell, at a point, and what is known of an object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError

Mask = NDArray[np.bool_]


class ObjectIndex:
    """A row of numbers per object in memory; outlines and features in files, read where they are asked for."""

    def __init__(self, folder: Path, features: Path, facts: dict[str, Any], offset: tuple[int, int]) -> None:
        """`facts`: what the worker said at the end; `offset`: where the file's coordinates begin on level 0."""
        arrays = {name: np.load(folder / f"{name}.npy") for name in ("classes", "places", "boxes", "measures", "cells")}
        self.classes: NDArray[np.uint8] = arrays["classes"]
        self.boxes: NDArray[np.float32] = arrays["boxes"][:, :4]
        """left, top, right, bottom in level-0 pixels."""
        self.centers: NDArray[np.float32] = arrays["boxes"][:, 4:]
        self.measures: NDArray[np.float32] = arrays["measures"]
        self.names: list[str] = facts["measures"]
        self.class_colors: dict[str, list[int]] = facts["classes"]
        self.columns, self.rows = facts["columns"], facts["rows"]
        self._offset = np.array(offset, dtype=np.float64)
        self._places: NDArray[np.int64] = arrays["places"]
        self._parts: dict[int, list[tuple[int, int]]] = {}
        for cell, start, stop in arrays["cells"].tolist():
            self._parts.setdefault(cell, []).append((start, stop))
        self._features = os.open(features, os.O_RDONLY)
        self._outlines = os.open(folder / "outlines.bin", os.O_RDONLY)

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def class_names(self) -> list[str]:
        return list(self.class_colors)

    def cell(self, column: int, row: int) -> bytes:
        """The pieces of outlines in a cell (see loops.py)."""
        if not (0 <= column < self.columns and 0 <= row < self.rows):
            return b""
        parts = self._parts.get(row * self.columns + column, [])
        return b"".join(os.pread(self._outlines, stop - start, start) for start, stop in parts)

    def at(self, x: float, y: float) -> int | None:
        """The smallest object at a level-0 point."""
        left, top, right, bottom = self.boxes.T
        near = np.flatnonzero((left <= x) & (x <= right) & (top <= y) & (y <= bottom))
        width, height = self.boxes[near, 2] - self.boxes[near, 0], self.boxes[near, 3] - self.boxes[near, 1]
        for number in near[np.argsort(width * height, kind="stable")].tolist():
            if inside(self.outline(number), x, y):
                return int(number)
        return None

    def text(self, number: int) -> bytes:
        """The feature as it stands in the file, without what divides it from the next."""
        start, length = self._places[number].tolist()
        return os.pread(self._features, length, start).rstrip(b",\r\n")

    def feature(self, number: int) -> dict[str, Any]:
        """The same as JSON."""
        try:
            found: dict[str, Any] = json.loads(self.text(number))
            return found
        except ValueError:
            raise InputError("objects.geojson has changed since it was opened; start the viewer again") from None

    def outline(self, number: int) -> list[NDArray[np.float64]]:
        """All rings in level-0 pixels."""
        geometry = self.feature(number)["geometry"]
        polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
        return [np.array(ring, dtype=np.float64)[:, :2] + self._offset for polygon in polygons for ring in polygon]

    def texts(self, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Many features, in their order."""
        return (self.text(number) for number in numbers.tolist())

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._features)
        os.close(self._outlines)


def inside(rings: list[NDArray[np.float64]], x: float, y: float) -> bool:
    """Whether a point lies inside an odd number of rings' turns."""
    crossings = 0
    for ring in rings:
        ax, ay = ring.T
        bx, by = np.roll(ax, -1), np.roll(ay, -1)
        crosses = (ay > y) != (by > y)
        at = ax + (y - ay) / np.where(by == ay, 1, by - ay) * (bx - ax)
        crossings += int((crosses & (x < at)).sum())
    return crossings % 2 == 1
