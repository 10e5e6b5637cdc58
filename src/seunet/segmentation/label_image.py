"""Label a whole image, tile by tile (`tiled.tile_loop`), and resume where an earlier run ended.

What is held in memory does not depend on the size of the image.  What is on the disk is a plane of labels, on request
planes of probabilities, and a ledger of the tiles that are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seunet.images.image import Image
from seunet.images.overview import Tissue, find_tissue
from seunet.progress import Progress, silent
from seunet.results.frame import NOT_ANALYSED
from seunet.results.planes import LABELS, PROBABILITIES, PlaneFiles, plane_names
from seunet.segmentation.regions import Regions
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.following import RowsDone
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_loop import Seconds, TileLoop
from seunet.segmentation.tiled.tile_pixels import Gap, WorkingRaster
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
from seunet.segmentation.tiled.tiling import Tile, cut_to
from seunet.storage.ledger import Ledger, begun_with


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
    progress: Progress = silent,
    identity: Mapping[str, Any] | None = None,
    regions: Regions | None = None,
    follow: Callable[[PlaneFiles, RowsDone], object] | None = None,
) -> Labelled:
    """Label `image` with `network`, whose σ are those of `plan`, into `folder`; resume where an earlier run ended.

    Nobody else may write there meanwhile (`storage.output_folder.held`).

    `identity` is what else tells this image from another one, e.g. the size and date of its file.  Outside `regions`
    nothing is looked at and everything is labelled 255.  `follow` is called before the first tile: it may have the
    planes read in another thread, as far as they are written (`tiled.following`).
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
            todo = [tile for tile in wanted if tile.number not in done]
            rows = RowsDone(raster.size[0], todo)
            rules = settings.background, settings.strict, settings.read_ahead, settings.probabilities
            run = TileLoop(raster, network, plan.downsample, tissue, regions, planes, ledger, rows, *rules)
            if follow is not None:
                follow(files, rows)
            run.go(todo, wanted, progress)
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


def _labelled(planes: PlaneFiles, run: TileLoop, wanted: Sequence[Tile], before: int) -> Labelled:
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
