"""Tile after tile into planes and ledger: a thread reads ahead, this one computes, a third writes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.image import RgbArray
from seunet.images.overview import Tissue
from seunet.maths.prediction import Prediction
from seunet.maths.stain import haematoxylin_density
from seunet.progress import Progress
from seunet.results.label_plane import Plane
from seunet.results.planes import DENSITY, tile_blocks
from seunet.segmentation.regions import Regions
from seunet.segmentation.tiled.following import RowsDone
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_pixels import Gap, WorkingRaster, gaps_within
from seunet.segmentation.tiled.tile_predictor import Advance, HeadwiseNetwork, TileInput
from seunet.segmentation.tiled.tiling import Tile
from seunet.storage.ledger import Ledger

SEGMENTING: Final = "segmenting"


@dataclass
class Seconds:
    """How long was spent on what; the three go on at the same time."""

    reading: float = 0.0
    network: float = 0.0
    writing: float = 0.0
    total: float = 0.0


class _Masks(NamedTuple):
    """Which pixels of a tile are analysed, which could not be read, and which lie in a region."""

    analysed: NDArray[np.bool_]
    unread: NDArray[np.bool_]
    inside: NDArray[np.bool_]


@dataclass
class TileLoop:
    """The three threads and what they share.  A pixel of `raster` is `downsample` of the slide's."""

    raster: WorkingRaster
    network: HeadwiseNetwork
    downsample: float
    tissue: Tissue | None
    regions: Regions | None
    planes: dict[str, Plane]
    ledger: Ledger
    done: RowsDone
    background: int = 0
    strict: bool = False
    read_ahead: int = 1
    probabilities: bool = False
    seconds: Seconds = field(default_factory=Seconds)

    def go(self, todo: Sequence[Tile], wanted: Sequence[Tile], progress: Progress) -> None:
        """Do the tiles of `todo`, in order."""
        total = sum(tile.pixels for tile in wanted)
        done = total - sum(tile.pixels for tile in todo)
        # What is on its way when something fails is still written: it is whole.
        with ThreadPoolExecutor(1, "seunet-writer") as writer, ThreadPoolExecutor(1, "seunet-reader") as reader:
            left = iter(todo)
            reads = deque(reader.submit(self._read, tile) for tile in islice(left, max(1, self.read_ahead)))
            written: Future[None] | None = None
            try:
                while reads:
                    given = reads.popleft().result()
                    reads.extend(reader.submit(self._read, tile) for tile in islice(left, 1))
                    tile = given.tile
                    before, written = (
                        written,
                        self._predicted(given, _within(progress, done, tile.pixels, total), writer),
                    )
                    # Let go of what is large before the next tile is taken.
                    del given
                    if before is not None:
                        before.result()
                    done += tile.pixels
                if written is not None:
                    written.result()
            finally:
                reader.shutdown(wait=False, cancel_futures=True)

    def _read(self, tile: Tile) -> TileInput:
        began = time.monotonic()
        given = self.network.read(self.raster, tile)
        if given.part.gaps and self.strict:
            raise RegionError(given.part.gaps[0].reason)
        self.seconds.reading += time.monotonic() - began
        return given

    def _predicted(self, given: TileInput, advance: Advance, writer: Executor) -> Future[None]:
        """Compute a tile; its rows are written while others are computed, and its record when all are."""
        began = time.monotonic()
        tile, mine = given.tile, gaps_within(given.part.gaps, given.tile.rows, given.tile.columns)
        unread, inside = _unread(tile, mine), self._inside(tile)
        masks = _Masks(_analysed(tile, unread, self.tissue, self.downsample) & inside, unread, inside)
        pixels = given.own_pixels
        written: list[Future[None]] = []

        def ready(said: Prediction, rows: Span) -> None:
            written.append(writer.submit(self._write, tile, rows, said, pixels, masks))

        prediction = self.network.predict_tile(given, self.raster.size, advance, ready, self.probabilities)
        record = _record(tile, prediction, masks.analysed, unread & inside, mine, self.network)
        self.seconds.network += time.monotonic() - began
        return writer.submit(self._seal, tile, {**record, "inside": int(inside.sum())}, written)

    def _inside(self, tile: Tile) -> NDArray[np.bool_]:
        """Which pixels of a tile lie in a region; all where there are none."""
        if self.regions is None:
            return np.ones((tile.rows.length, tile.columns.length), dtype=np.bool_)
        return self.regions.mask(tile.rows, tile.columns, self.downsample)

    def _write(self, tile: Tile, rows: Span, said: Prediction, pixels: RgbArray, masks: _Masks) -> None:
        """Some rows of a tile, into the planes."""
        began = time.monotonic()
        part = slice(*rows)
        outside = masks.unread[part] | ~masks.inside[part]
        found = said.rows(*rows)
        density = haematoxylin_density(pixels[part]) if DENSITY in self.planes else None
        blocks = tile_blocks(found, self.planes, masks.analysed[part], outside, self.background, density)
        for name, block in blocks.items():
            self.planes[name].write(tile.rows.start + rows.start, tile.columns.start, block)
        self.done.note(tile, tile.rows.start + rows.stop)
        self.seconds.writing += time.monotonic() - began

    def _seal(self, tile: Tile, record: dict[str, Any], written: list[Future[None]]) -> None:
        """Note a tile in the ledger when all of it is on the disk."""
        for rows in written:
            rows.result()
        began = time.monotonic()
        for plane in self.planes.values():
            plane.sync()
        self.ledger.add(record)
        self.seconds.writing += time.monotonic() - began


def _within(progress: Progress, before: int, pixels: int, total: int) -> Advance:
    """What is called within a tile of so many `pixels`, `before` which others were done."""
    progress(before, total, SEGMENTING)
    return lambda share: progress(before + round(share * pixels), total, SEGMENTING)


def _unread(tile: Tile, gaps: tuple[Gap, ...]) -> NDArray[np.bool_]:
    """Which pixels of a tile could not be read."""
    found = np.zeros((tile.rows.length, tile.columns.length), dtype=np.bool_)
    for gap in gaps:
        found[gap.rows.within(tile.rows), gap.columns.within(tile.columns)] = True
    return found


def _analysed(tile: Tile, unread: NDArray[np.bool_], tissue: Tissue | None, downsample: float) -> NDArray[np.bool_]:
    """Which pixels of a tile are tissue and were read."""
    return ~unread if tissue is None else tissue.mask(tile.rows, tile.columns, downsample) & ~unread


def _record(
    tile: Tile,
    prediction: Prediction,
    analysed: NDArray[np.bool_],
    unread: NDArray[np.bool_],
    gaps: tuple[Gap, ...],
    network: HeadwiseNetwork,
) -> dict[str, Any]:
    """The line of a tile."""
    all_of_it = bool(analysed.all())

    def within(plane: NDArray[Any]) -> NDArray[Any]:
        return plane.reshape(-1) if all_of_it else plane[analysed]

    return {
        "tile": tile.number,
        "rows": tile.rows,
        "columns": tile.columns,
        "classes": np.bincount(within(prediction.labels), minlength=network.classes).tolist(),
        "heads": np.bincount(within(prediction.heads), minlength=network.heads).tolist(),
        # In double precision and one order: the same number in whichever tile.
        "confidence": float(within(prediction.confidence).sum(dtype=np.float64)),
        "unread": int(unread.sum()),
        "gaps": [[gap.rows, gap.columns, gap.reason] for gap in gaps],
    }
