"""One image or slide: opened, analysed at its magnification, written down.

OUT/NAME/objects.geojson, counts.csv, labels.tif, overlay.png, heads.png (docs/outputs.md)
OUT/NAME/run.json     written last: where it is, the result is complete
OUT/NAME/.work/       labels and ledger while it is being made; a stopped run resumes from there
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from seunet.images.facts import describe
from seunet.images.image import Image
from seunet.images.overview import thumbnail
from seunet.images.sandboxed import open_guarded
from seunet.memory import give_back_freed_memory
from seunet.models.card import ModelCard
from seunet.models.files import shared_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent
from seunet.results.cohort import RUN_NAME, WORK_NAME
from seunet.results.counts import summary_row
from seunet.results.frame import Color, Frame
from seunet.results.label_plane import Labels
from seunet.results.planes import LABELS, RIM, measured_planes
from seunet.results.write import FoundObjects, write_objects, write_other_files
from seunet.segmentation.inputs import Item
from seunet.segmentation.label_image import Labelled, LabelSettings, label_image
from seunet.segmentation.options import Choices, LeastArea, least_area
from seunet.segmentation.regions import (
    REGIONS_NAME,
    RegionCounts,
    Regions,
    check_within,
    read_regions,
    regions_file,
)
from seunet.segmentation.run_json import document_of, finished, forget, gap_lines, identity_of, note_scale
from seunet.segmentation.scale_choice import ReadingPlan, known_scale, plan_for, scale_lines
from seunet.segmentation.tiled.following import Follower
from seunet.segmentation.tiled.tile_predictor import shared_predictor_for
from seunet.storage.atomic import write_text
from seunet.storage.object_store import shown
from seunet.storage.output_folder import held

OVERLAY_PX: Final = 2048
BAND_ROWS: Final = 256
"""Of labels that are looked through for objects at a time, while the rows below are computed."""
COLORS: Final = ((230, 75, 53), (77, 187, 213), (0, 160, 135), (60, 84, 136), (243, 155, 127), (145, 209, 194))
BACKGROUND: Final = "background"


class FileResult(NamedTuple):
    """What became of one input."""

    name: str
    state: str
    """"done", "part" (a region could not be read) or "before" (it was there already)."""
    lines: tuple[str, ...]
    """What the user should know, a line each."""
    row: dict[str, str]
    """Its row in summary.csv."""


def segment_file(
    item: Item, out: Path, choices: Choices, progress: Progress = silent, wait: bool = False
) -> FileResult:
    """Analyse one image into OUT/NAME; what is complete is kept, what was begun is resumed.

    With `wait`, another process that is at work there is waited for, instead of an error.
    """
    started = time.monotonic()
    chosen = shared_model(choices.model)
    folder = out / item.name
    with (
        held(folder, wait),
        closing(open_guarded(item.path, item.mpp if item.mpp is not None else choices.mpp)) as image,
    ):
        described = describe(image)
        opened = time.monotonic()
        scale = known_scale(image, chosen.model, choices.scale)
        estimated = time.monotonic()
        plan = plan_for(chosen.model, scale.used, image.levels)
        identity = identity_of(item.path, described, chosen, plan, choices)
        regions = None
        if choices.roi is not None:
            regions = read_regions(regions_file(choices.roi, item.name), (image.bounds.x, image.bounds.y))
            check_within(regions, (image.levels[0].height_px, image.levels[0].width_px), image.name)
            identity["choices"]["roi"] = f"a file with sha256 {regions.sha256[:12]}"
        if choices.overwrite:
            forget(folder)
        before = finished(folder, identity)
        if before is not None:
            return FileResult(item.name, "before", before.notes, before.document["summary"])
        least = least_area(choices.min_area, scale.mpp, plan.downsample)
        document, found = _analysed(
            image, chosen.model, plan, identity, folder, choices, least, progress, regions, item.name
        )
        note_scale(document, scale)
        # Where the viewer finds the slide: from the result, so that both can be moved together.
        document["source"] = (
            Path(os.path.relpath(item.path, folder)).as_posix() if item.remote is None else shown(item.remote.url)
        )
        document["model_given"] = choices.model
        document["versions"] = {"python": platform.python_version(), "torch": torch.__version__}
        document["clock"]["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        document["clock"]["seconds_by_part"]["scale"] = round(estimated - opened, 2)
        document["clock"]["seconds"] = round(time.monotonic() - started, 2)
        write_text(folder / RUN_NAME, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        shutil.rmtree(folder / WORK_NAME, ignore_errors=True)
        lines = (
            *image.warnings,
            *scale_lines(scale, plan.reason),
            *gap_lines(found, image.name, plan.downsample),
            *document["notes"],
        )
    return FileResult(item.name, "part" if found.gaps else "done", lines, document["summary"])


def frame_for(image: Image, card: ModelCard | None, classes: int, plan: ReadingPlan) -> Frame:
    """Where the working pixels lie on the slide, and what the codes of so many classes mean."""
    names = card.class_names if card is not None else ()
    named = names[:classes] or tuple(f"class {code}" for code in range(classes))
    colors: Sequence[Color] = card.class_colors if card is not None and card.class_colors else ()
    chosen = tuple(colors[:classes]) or tuple(COLORS[code % len(COLORS)] for code in range(classes))
    counted = (card is not None and card.instances) or (card is None and classes == 2)
    background = 0 if counted else next((code for code, name in enumerate(named) if name == BACKGROUND), None)
    regions = () if counted else (code for code in range(classes) if code != background)
    mpp = None if image.mpp is None else image.mpp.mean * plan.downsample
    size = image.levels[0].height_px, image.levels[0].width_px
    corner = image.bounds.x, image.bounds.y
    return Frame(plan.downsample, *corner, mpp, named, chosen, background, frozenset(regions), size)


def _analysed(
    image: Image,
    model: ScaleUNet,
    plan: ReadingPlan,
    identity: dict[str, Any],
    folder: Path,
    choices: Choices,
    least: LeastArea,
    progress: Progress,
    regions: Regions | None,
    name: str,
) -> tuple[dict[str, Any], Labelled]:
    network = shared_predictor_for(
        model, plan.factor, plan.relative_scale is not None, choices.fusion, None, choices.device, choices.runtime
    )
    frame = frame_for(image, model.card, network.classes, plan)
    settings = LabelSettings(
        heads=network.heads > 1,
        tile_px=choices.tile_px,
        # Without a background there is no label for glass: all of it is analysed.
        tissue=choices.tissue and frame.background is not None,
        background=frame.background or 0,
        probabilities=choices.probabilities,
        measured=True,
        strict=choices.strict,
    )
    decided = {**identity, "choices": choices.deciding_labels()}
    if regions is not None:
        decided["regions"] = regions.sha256
    counts = None if regions is None else RegionCounts(regions, frame)

    def objects_of(planes: Mapping[str, Labels]) -> FoundObjects:
        return write_objects(
            folder,
            planes[LABELS],
            frame,
            thumbnail(image, OVERLAY_PX),
            split=choices.split,
            min_area_px=least.working_px,
            smooth=choices.smooth,
            zipped=choices.zipped,
            rim=planes.get(RIM),
            measured=measured_planes(planes),
            instances=choices.instances,
            watched=None if counts is None else counts.passing,
            band_rows=BAND_ROWS,
        )

    with Follower(objects_of) as follower:
        work = folder / WORK_NAME
        found = label_image(image, network, plan, work, settings, progress, decided, regions, follower.follow)
        if sum(found.pixels_by_class) > network.large_px:
            give_back_freed_memory()
        progress(1, 1, "writing the results")
        labelled = time.monotonic()
        made = follower.made()
    row = summary_row(name, made.tally, frame, found.skipped_px)
    write_other_files(
        folder,
        found.planes,
        frame,
        made,
        image_name=image.name,
        pixels_by_head=found.pixels_by_head,
        sigmas_px=network.sigmas_px,
        skipped_px=found.skipped_px,
    )
    if counts is not None:
        counts.write(folder / REGIONS_NAME)
    seconds = {**asdict(found.seconds), "results": time.monotonic() - labelled}
    return document_of(identity, found, made.tally, frame, model, network, least, row, seconds), found
