"""Slides with results to look at, made in a moment: discs on pink, and the files of `seunet segment` for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from seunet.results import ArrayPlane, Frame, write_results
from support.planes import Codes, discs

NAMES, COLORS = ("background", "nucleus"), ((0, 0, 0), (255, 214, 64))
Circles = Sequence[tuple[float, float, float]]


def grid_of_circles(side_px: int, step_px: int = 100) -> list[tuple[float, float, float]]:
    """Discs of radius 10, 11, … 29 px in rows: (row, column, radius)."""
    places = np.arange(step_px // 2, side_px, step_px)
    return [
        (float(row), float(column), float(10 + number % 20))
        for number, (row, column) in enumerate((row, column) for row in places for column in places)
    ]


def painted(side_px: int, circles: Circles) -> Codes:
    """Code 1 in discs, each drawn in its own square."""
    codes = np.zeros((side_px, side_px), dtype=np.uint8)
    for row, column, radius in circles:
        top, left, side = max(0, int(row - radius)), max(0, int(column - radius)), int(2 * radius) + 3
        part = codes[top : top + side, left : left + side]
        part |= discs(part.shape[0], part.shape[1], [(row - top, column - left, radius)])
    return codes


def made_slide(path: Path, side_px: int, circles: Circles, mpp: float = 0.5) -> Path:
    """A TIFF of violet discs on pink."""
    path.parent.mkdir(parents=True, exist_ok=True)
    inside = painted(side_px, circles)[..., None] == 1
    pixels = np.where(inside, np.array((105, 70, 150), np.uint8), np.array((235, 190, 215), np.uint8))
    tifffile.imwrite(path, pixels, tile=(256, 256), resolution=(1e4 / mpp, 1e4 / mpp), resolutionunit="CENTIMETER")
    return path


def made_result(
    folder: Path, slide: Path, side_px: int, circles: Circles, mpp: float = 0.5, run: Mapping[str, Any] | None = None
) -> Path:
    """The result of finding exactly these discs; `run` replaces parts of run.json."""
    frame = Frame(1.0, 0, 0, mpp, NAMES, COLORS)
    thumbnail = np.full((64, 64, 3), 230, dtype=np.uint8)
    plane = ArrayPlane(painted(side_px, circles))
    tally = write_results(folder, plane, frame, thumbnail, split=False)
    document = {
        "format": "seunet-run/1",
        "image": {
            "file": slide.name,
            "bytes": slide.stat().st_size if slide.exists() else 0,
            "levels": [{"width_px": side_px, "height_px": side_px, "downsample": 1.0}],
            "bounds": {"x": 0, "y": 0, "width_px": side_px, "height_px": side_px},
            "mpp": {"x": mpp, "y": mpp, "source": "tiff-tag"},
        },
        "magnification": {"downsample": 1.0},
        "scale": {"source": "tiff-tag", "stated_mpp": mpp, "estimate": None, "conflict": None},
        "results": {"objects": {name: int(tally.objects[code]) for code, name in enumerate(NAMES)}},
        "notes": [],
        "source": str(slide.absolute()),
        **(run or {}),
    }
    (folder / "run.json").write_text(json.dumps(document))
    return folder
