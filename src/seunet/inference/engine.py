"""Tile after tile of a slide into planes on disk: reading, network and writing overlap; memory does not grow.

WORK/ledger.jsonl   the tiles that are done
WORK/labels         a byte a pixel: the class, 255 where the image could not be read
WORK/class-N        probability of class N as round(255 p), on request
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from seunet.errors import RegionError
from seunet.inference.cells import Cell, Region, cell_part, cells_of, mark, read_region
from seunet.inference.frame import NOT_ANALYSED
from seunet.inference.heads import HeadwiseNetwork, Prediction, Rectangle, tile_cores
from seunet.inference.ledger import Ledger
from seunet.inference.plane import Plane
from seunet.inference.probabilities import as_byte
from seunet.inference.tissue import TissueMask
from seunet.inference.working import WorkingImage
from seunet.maths.spans import Span
from seunet.models.skeleton import ScaleUNet

TILE_PX: Final = 1536
GLASS: Final = 0
"""The class of what the tissue mask leaves out."""
LINES_SHOWN: Final = 5

Progress = Callable[[int, int, str], None]


class Labelled(NamedTuple):
    """A slide whose every pixel has a label."""

    labels: Plane
    probabilities: tuple[Plane, ...]
    skipped_px: int
    unreadable: tuple[str, ...]
    head_pixels: tuple[int, ...]
    confidence: float | None
    tiles: int
    resumed_tiles: int
    seconds: dict[str, float]


class _Tile(NamedTuple):
    """A tile with something to analyse: its number, place, and the cells in it that are glass."""

    number: int
    core: Rectangle
    glass: tuple[Cell, ...]


def label_image(
    working: WorkingImage,
    model: ScaleUNet,
    work: Path,
    *,
    identity: dict[str, Any],
    tissue: TissueMask | None = None,
    fusion: str = "p_ens",
    tile_px: int | None = None,
    probabilities: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> Labelled:
    """Analyse the whole of `working` with `model`, which is already at the scale of the plan.

    What was done before under the same `identity` is not done again.  `strict` raises where a region cannot be read.
    """
    height_px, width_px = working.height_px, working.width_px
    network = HeadwiseNetwork(model, fusion)
    side = tile_px or TILE_PX
    cores = tile_cores(height_px, width_px, side)
    tiles = [_Tile(number, core, _glass_cells(core, tissue)) for number, core in enumerate(cores)]
    tiles = [tile for tile in tiles if len(tile.glass) < len(list(cells_of(tile.core)))]
    ledger = Ledger(work / "ledger.jsonl", {**identity, "tile_px": side, "probabilities": probabilities})
    planes = _Planes(work, height_px, width_px, model.classes if probabilities else 0)
    job = _Job(working, network, ledger, planes, strict)
    try:
        seconds = job.run(tiles, progress)
    finally:
        ledger.close()
    return Labelled(
        planes.labels,
        tuple(planes.classes),
        _glass_pixels(height_px, width_px, tissue),
        job.unreadable_lines(),
        tuple(np.sum([row["heads"] for row in job.rows], axis=0).tolist()) if job.rows else (0,) * model.heads,
        job.confidence(),
        len(tiles),
        job.resumed,
        seconds,
    )


class _Planes:
    """Where labels and probabilities go."""

    def __init__(self, work: Path, height_px: int, width_px: int, classes: int) -> None:
        self.labels = Plane(work / "labels", height_px, width_px)
        self.classes = [Plane(work / f"class-{code}", height_px, width_px) for code in range(classes)]

    def write(self, core: Rectangle, prediction: Prediction) -> None:
        y, x = core.rows.start, core.columns.start
        self.labels.write(y, x, prediction.labels)
        for plane, values in zip(self.classes, prediction.probabilities.numpy(), strict=False):
            plane.write(y, x, as_byte(values))
        for plane in (self.labels, *self.classes):
            plane.sync()


class _Job:
    """One start of a slide."""

    def __init__(
        self, working: WorkingImage, network: HeadwiseNetwork, ledger: Ledger, planes: _Planes, strict: bool
    ) -> None:
        self._working, self._network, self._ledger, self._planes = working, network, ledger, planes
        self._strict = strict
        self.rows = list(ledger.rows)
        self.resumed = len(self.rows)
        self._seconds = {"reading": 0.0, "waiting for pixels": 0.0, "network": 0.0, "writing": 0.0}

    def run(self, tiles: Sequence[_Tile], progress: Progress | None) -> dict[str, float]:
        """Do what is not done yet; seconds by part, of which reading and writing lie beside the network."""
        done = {row["tile"] for row in self.rows}
        todo = [tile for tile in tiles if tile.number not in done]
        total = sum(tile.core.pixels for tile in tiles)
        pixels = total - sum(tile.core.pixels for tile in todo)
        writing_now: Future[None] | None = None
        with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:
            reading_now = reader.submit(self._read, todo[0]) if todo else None
            for place, tile in enumerate(todo):
                if progress is not None:
                    progress(pixels, total, self._working.image.name)
                assert reading_now is not None
                seen, region = self._timed("waiting for pixels", reading_now.result)
                reading_now = reader.submit(self._read, todo[place + 1]) if place + 1 < len(todo) else None
                predicted = self._timed("network", self._predict, tile, seen, region)
                if writing_now is not None:
                    writing_now.result()
                writing_now = writer.submit(self._timed, "writing", self._write, tile, region, predicted)
                pixels += tile.core.pixels
            if writing_now is not None:
                writing_now.result()
        return {name: round(spent, 2) for name, spent in self._seconds.items()}

    def unreadable_lines(self) -> tuple[str, ...]:
        """A line for each of the first cells that could not be read, and how many there are."""
        found = sorted((tuple(cell), reason) for row in self.rows for cell, reason in row["unreadable"])
        lines = [f"{self._place(cell)} not analysed: {reason}" for cell, reason in found[:LINES_SHOWN]]
        if len(found) > LINES_SHOWN:
            lines.append(f"{len(found) - LINES_SHOWN} more parts not analysed (255 in labels.tif)")
        return tuple(lines)

    def confidence(self) -> float | None:
        """The mean over all pixels that were analysed."""
        pixels = sum(sum(row["heads"]) for row in self.rows)
        return round(sum(row["confidence"] for row in self.rows) / pixels, 6) if pixels else None

    def _place(self, cell: tuple[int, ...]) -> str:
        part = cell_part((cell[0], cell[1]), _whole(self._working.height_px, self._working.width_px))
        to_level0 = self._working.plan.scale_to_level0
        x, y, width, height = (
            round(value * to_level0)
            for value in (part.columns.start, part.rows.start, part.columns.length, part.rows.length)
        )
        return f"{self._working.image.name}: {width}×{height} px at ({x}, {y})"

    def _timed(self, part: str, function: Callable[..., Any], *arguments: Any) -> Any:
        started = time.monotonic()
        try:
            return function(*arguments)
        finally:
            self._seconds[part] += time.monotonic() - started

    def _read(self, tile: _Tile) -> tuple[Rectangle, Region]:
        seen = self._network.seen(tile.core, self._working.height_px, self._working.width_px)
        region = self._timed("reading", read_region, self._working, seen)
        if region.unreadable and self._strict:
            cell, reason = next(iter(region.unreadable.items()))
            raise RegionError(f"{self._place(cell)} cannot be read: {reason}")
        return seen, region

    def _predict(self, tile: _Tile, seen: Rectangle, region: Region) -> Prediction:
        size = self._working.height_px, self._working.width_px
        return self._network.predict(region.pixels, seen, tile.core, *size)

    def _write(self, tile: _Tile, region: Region, predicted: Prediction) -> None:
        unreadable = {cell: why for cell, why in region.unreadable.items() if cell_part(cell, tile.core).pixels}
        left_out = [cell for cell in tile.glass if cell not in unreadable]
        mark(predicted.labels, tile.core, left_out, GLASS)
        mark(predicted.labels, tile.core, unreadable, NOT_ANALYSED)
        for code, values in enumerate(predicted.probabilities.numpy()):
            mark(values, tile.core, left_out, int(code == GLASS))
            mark(values, tile.core, unreadable, 0)
        analysed = np.ones(predicted.labels.shape, dtype=np.uint8)
        mark(analysed, tile.core, [*left_out, *unreadable], 0)
        counted = analysed.astype(bool)
        self._planes.write(tile.core, predicted)
        row = {
            "tile": tile.number,
            "heads": np.bincount(predicted.winners[counted], minlength=self._network.heads).tolist(),
            "confidence": float(predicted.confidence[counted].sum(dtype=np.float64)),
            "unreadable": [[list(cell), why] for cell, why in unreadable.items()],
        }
        self._ledger.note(row)
        self.rows.append(row)


def _whole(height_px: int, width_px: int) -> Rectangle:
    return Rectangle(Span(0, height_px), Span(0, width_px))


def _glass_cells(core: Rectangle, tissue: TissueMask | None) -> tuple[Cell, ...]:
    """The cells a tile touches that have no tissue anywhere, inside the tile or not."""
    return () if tissue is None else tuple(cell for cell in cells_of(core) if _is_glass(cell, tissue))


def _is_glass(cell: Cell, tissue: TissueMask) -> bool:
    part = cell_part(cell, _whole(tissue.height_px, tissue.width_px))
    return not tissue.any_in(part.columns.start, part.rows.start, part.columns.length, part.rows.length)


def _glass_pixels(height_px: int, width_px: int, tissue: TissueMask | None) -> int:
    whole = _whole(height_px, width_px)
    return sum(cell_part(cell, whole).pixels for cell in _glass_cells(whole, tissue))
