"""Tile after tile into planes and ledger: a thread reads ahead, this one computes, a third writes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.overview import Tissue
from seunet.maths.prediction import Prediction
from seunet.progress import Progress
from seunet.results.label_plane import Plane
from seunet.results.planes import tile_blocks
from seunet.segmentation.regions import Regions
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


class _Finished(NamedTuple):
    """What is written of a tile."""

    tile: Tile
    blocks: dict[str, NDArray[np.uint8]]
    record: dict[str, Any]


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
    background: int = 0
    strict: bool = False
    read_ahead: int = 1
    seconds: Seconds = field(default_factory=Seconds)

    def go(self, todo: Sequence[Tile], wanted: Sequence[Tile], progress: Progress | None) -> None:
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
                    work = self._predicted(given, _within(progress, done, tile.pixels, total))
                    # Let go of what is large before the next tile is taken.
                    del given
                    if written is not None:
                        written.result()
                    written = writer.submit(self._write, work)
                    del work
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

    def _predicted(self, given: TileInput, advance: Advance | None) -> _Finished:
        began = time.monotonic()
        prediction = self.network.predict_tile(given, self.raster.size, advance)
        work = self._finished(given, prediction)
        self.seconds.network += time.monotonic() - began
        return work

    def _finished(self, given: TileInput, prediction: Prediction) -> _Finished:
        tile, mine = given.tile, gaps_within(given.part.gaps, given.tile.rows, given.tile.columns)
        unread = _unread(tile, mine)
        analysed = _analysed(tile, unread, self.tissue, self.downsample)
        inside = self._inside(tile)
        record = _record(tile, prediction, analysed & inside, unread & inside, mine, self.network)
        pixels = given.part.pixels[tile.rows.within(given.held[0]), tile.columns.within(given.held[1])]
        blocks = tile_blocks(prediction, pixels, self.planes, analysed & inside, unread | ~inside, self.background)
        return _Finished(tile, blocks, {**record, "inside": int(inside.sum())})

    def _inside(self, tile: Tile) -> NDArray[np.bool_]:
        """Which pixels of a tile lie in a region; all where there are none."""
        if self.regions is None:
            return np.ones((tile.rows.length, tile.columns.length), dtype=np.bool_)
        return self.regions.mask(tile.rows, tile.columns, self.downsample)

    def _write(self, work: _Finished) -> None:
        began = time.monotonic()
        for name, block in work.blocks.items():
            self.planes[name].write(work.tile.rows.start, work.tile.columns.start, block)
            self.planes[name].sync()
        self.ledger.add(work.record)
        self.seconds.writing += time.monotonic() - began


def _within(progress: Progress | None, before: int, pixels: int, total: int) -> Advance | None:
    """What is called within a tile of so many `pixels`, `before` which others were done."""
    if progress is None:
        return None
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
    return {
        "tile": tile.number,
        "rows": tile.rows,
        "columns": tile.columns,
        "classes": np.bincount(prediction.labels[analysed], minlength=network.classes).tolist(),
        "heads": np.bincount(prediction.heads[analysed], minlength=network.heads).tolist(),
        # In double precision and one order: the same number in whichever tile.
        "confidence": float(prediction.confidence[analysed].sum(dtype=np.float64)),
        "unread": int(unread.sum()),
        "gaps": [[gap.rows, gap.columns, gap.reason] for gap in gaps],
    }
