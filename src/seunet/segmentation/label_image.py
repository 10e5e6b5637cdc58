"""Label a whole image, tile by tile: a thread reads ahead, this one computes, a third writes.

What is held in memory does not depend on the size of the image.  What is on the disk is a plane of labels, on request
planes of probabilities, and a ledger of the tiles that are done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.images.image import Image
from seunet.images.overview import Tissue, find_tissue
from seunet.maths.prediction import Prediction
from seunet.progress import Progress
from seunet.results.frame import NOT_ANALYSED
from seunet.results.label_plane import Plane
from seunet.results.planes import LABELS, PROBABILITIES, PlaneFiles, plane_names, tile_blocks
from seunet.segmentation.regions import Regions
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_pixels import Gap, WorkingRaster, gaps_within
from seunet.segmentation.tiled.tile_predictor import Advance, HeadwiseNetwork, TileInput
from seunet.segmentation.tiled.tiling import Tile, cut_to
from seunet.storage.ledger import Ledger, begun_with

SEGMENTING: Final = "segmenting"


@dataclass(frozen=True)
class LabelSettings:
    """What can be chosen about a run beside the model and the plan."""

    tile_px: int | None = None
    """The side of square tiles; None for the size that suits the network."""
    tissue: bool = True
    """Whether what is glass is left out."""
    background: int = 0
    """The label of what is left out."""
    probabilities: bool = False
    """Whether probabilities are kept too, as round(255 p)."""
    heads: bool = True
    """Whether the head that won each pixel is kept too: 1, 2, … from the finest, 0 where nobody looked."""
    measured: bool = False
    """Whether density of haematoxylin and confidence of each pixel are kept too, to be averaged over objects."""
    strict: bool = False
    """Whether a part that cannot be read ends the run."""
    read_ahead: int = 1
    """Tiles that are read before they are needed.  It changes no result."""


@dataclass
class Seconds:
    """How long was spent on what; the three go on at the same time."""

    reading: float = 0.0
    network: float = 0.0
    writing: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Labelled:
    """A labelled image: planes to read from, and what there is to say."""

    planes: PlaneFiles
    tiles: int
    """Tiles with tissue in them; `tiles_before` of them were done by an earlier run."""
    tiles_before: int
    tissue_share: float
    """Of the area; 1 where everything was looked at."""
    pixels_by_class: tuple[int, ...]
    """Of what was analysed."""
    pixels_by_head: tuple[int, ...]
    """How many pixels each head won."""
    mean_confidence: float
    pixels_unread: int
    skipped_px: int
    """Working pixels that were left out as glass: neither analysed nor unreadable."""
    gaps: tuple[Gap, ...]
    """What could not be read: labelled 255.  Gaps may overlap; `pixels_unread` counts each pixel once."""
    notes: tuple[str, ...]
    seconds: Seconds


def label_image(
    image: Image,
    network: HeadwiseNetwork,
    plan: ReadingPlan,
    folder: Path,
    settings: LabelSettings | None = None,
    progress: Progress | None = None,
    identity: Mapping[str, Any] | None = None,
    regions: Regions | None = None,
) -> Labelled:
    """Label `image` with `network`, whose σ are those of `plan`, into `folder`; resume where an earlier run ended.

    Nobody else may write there meanwhile (`storage.output_folder.held`).

    `identity` is what else tells this image from another one, e.g. the size and date of its file.  Outside `regions`
    nothing is looked at and everything is labelled 255.
    """
    settings = settings or LabelSettings()
    began = time.monotonic()
    raster = WorkingRaster(image, plan)
    every = network.tiles(raster.size, settings.tile_px)
    whole: dict[str, Any] = {
        "image": {"name": image.name, "levels": image.levels, **(identity or {})},
        "network": network.identity(),
        "plan": asdict(plan),
        "settings": _deciding(settings),
        "tile": network.tile_size(settings.tile_px),
    }
    begun = begun_with(folder)
    if "settings" in begun and "measured" not in begun["settings"]:
        # What an earlier edition began goes on without measurements: its tiles have none.
        settings = replace(settings, measured=False)
        whole["settings"].pop("measured", None)
    # What nobody writes is 0; where glass has another label, or a probability that is not 0, it is written first.
    filled = {
        LABELS: settings.background if regions is None else NOT_ANALYSED,
        PROBABILITIES.format(settings.background): 255,
    }
    with Ledger(folder, whole) as ledger:
        names = plane_names(
            network.classes,
            heads=settings.heads,
            rim=network.rim is not None,
            measured=settings.measured,
            probabilities=settings.probabilities,
        )
        files = PlaneFiles(folder, raster.size, names)
        with files.opened(afresh=ledger.afresh, filled=filled) as planes:
            ledger.begin()
            tissue = find_tissue(image) if settings.tissue else None
            wanted = _wanted_tiles(every, tissue if regions is None else regions, plan)
            done = {record["tile"] for record in ledger.finished}
            run = _Run(raster, network, plan, settings, tissue, planes, ledger, Seconds(), regions)
            run.go([tile for tile in wanted if tile.number not in done], wanted, progress)
        run.seconds.total = time.monotonic() - began
        return _labelled(files, run, wanted, len(done))


def _deciding(settings: LabelSettings) -> dict[str, Any]:
    """What the planes depend on; not to measure is not written, as when nothing was measured yet."""
    apart = {"strict", "read_ahead"} | (set() if settings.measured else {"measured"})
    return {name: value for name, value in asdict(settings).items() if name not in apart}


def _wanted_tiles(every: list[Tile], tissue: Tissue | Regions | None, plan: ReadingPlan) -> list[Tile]:
    """The tiles with tissue, or with a part of a region, in them, each cut to it."""
    if tissue is None:
        return every
    cut = (cut_to(one, tissue.mask(one.rows, one.columns, plan.downsample)) for one in every)
    return [one for one in cut if one is not None]


class _Finished(NamedTuple):
    """What is written of a tile."""

    tile: Tile
    blocks: dict[str, NDArray[np.uint8]]
    record: dict[str, Any]


@dataclass
class _Run:
    """The three threads and what they share."""

    raster: WorkingRaster
    network: HeadwiseNetwork
    plan: ReadingPlan
    settings: LabelSettings
    tissue: Tissue | None
    planes: dict[str, Plane]
    ledger: Ledger
    seconds: Seconds = field(default_factory=Seconds)
    regions: Regions | None = None

    def go(self, todo: Sequence[Tile], wanted: Sequence[Tile], progress: Progress | None) -> None:
        """Do the tiles of `todo`, in order."""
        total = sum(tile.pixels for tile in wanted)
        done = total - sum(tile.pixels for tile in todo)
        # What is on its way when something fails is still written: it is whole.
        with ThreadPoolExecutor(1, "seunet-writer") as writer, ThreadPoolExecutor(1, "seunet-reader") as reader:
            left = iter(todo)
            reads = deque(reader.submit(self._read, tile) for tile in islice(left, max(1, self.settings.read_ahead)))
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
        if given.part.gaps and self.settings.strict:
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
        analysed = _analysed(tile, unread, self.tissue, self.plan.downsample)
        inside = self._inside(tile)
        record = _record(tile, prediction, analysed & inside, unread & inside, mine, self.network)
        pixels = given.part.pixels[tile.rows.within(given.held[0]), tile.columns.within(given.held[1])]
        background = self.settings.background
        blocks = tile_blocks(prediction, pixels, self.planes, analysed & inside, unread | ~inside, background)
        return _Finished(tile, blocks, {**record, "inside": int(inside.sum())})

    def _inside(self, tile: Tile) -> NDArray[np.bool_]:
        """Which pixels of a tile lie in a region; all where there are none."""
        if self.regions is None:
            return np.ones((tile.rows.length, tile.columns.length), dtype=np.bool_)
        return self.regions.mask(tile.rows, tile.columns, self.plan.downsample)

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


def _labelled(planes: PlaneFiles, run: _Run, wanted: Sequence[Tile], before: int) -> Labelled:
    records = sorted(run.ledger.finished, key=lambda record: int(record["tile"]))
    classes, heads = (
        tuple(int(sum(column)) for column in zip(*(record[key] for record in records), strict=True))
        or (0,) * (run.network.classes if key == "classes" else run.network.heads)
        for key in ("classes", "heads")
    )
    analysed, unread = sum(classes), sum(record["unread"] for record in records)
    whole_px = run.raster.size[0] * run.raster.size[1]
    wanted_px = whole_px if run.regions is None else sum(record["inside"] for record in records)
    return Labelled(
        planes=planes,
        tiles=len(wanted),
        tiles_before=before,
        tissue_share=1.0 if run.tissue is None else run.tissue.share,
        pixels_by_class=classes,
        pixels_by_head=heads,
        mean_confidence=sum(record["confidence"] for record in records) / analysed if analysed else 0.0,
        pixels_unread=unread,
        skipped_px=wanted_px - analysed - unread,
        gaps=tuple(Gap(Span(*r), Span(*c), why) for record in records for r, c, why in record["gaps"]),
        notes=(run.ledger.note,) if run.ledger.note else (),
        seconds=run.seconds,
    )
