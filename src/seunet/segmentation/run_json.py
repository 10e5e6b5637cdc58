"""run.json: what went in, what was decided, what came out, what it took; and the lines that a user should see."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import seunet
from seunet.models.files import TrainedModel
from seunet.models.unet_skeleton import ScaleUNet
from seunet.results.find_objects import Tally
from seunet.results.frame import Frame
from seunet.segmentation.label_image import Labelled
from seunet.segmentation.options import Choices, LeastArea
from seunet.segmentation.scale_choice import KnownScale, ReadingPlan, scale_facts
from seunet.segmentation.tile_predictor import HeadwiseNetwork

FORMAT: Final = "seunet-run/1"
LINES_SHOWN: Final = 5


def identity_of(
    path: Path, described: dict[str, Any], chosen: TrainedModel, plan: ReadingPlan, choices: Choices
) -> dict[str, Any]:
    """What a result depends on: the file, the weights, the magnification and the choices."""
    status = path.stat()
    return {
        "format": FORMAT,
        "seunet": seunet.__version__,
        "image": {"file": path.name, "bytes": status.st_size, "modified_ns": status.st_mtime_ns, **described},
        "model": {"name": chosen.model.name, "sha256": chosen.weights_sha256},
        "magnification": asdict(plan),
        "choices": choices.deciding(),
    }


def document_of(
    identity: dict[str, Any],
    found: Labelled,
    tally: Tally,
    frame: Frame,
    model: ScaleUNet,
    network: HeadwiseNetwork,
    least: LeastArea,
    row: dict[str, str],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """run.json: what went in, what was decided, what came out, what it took."""
    won, sigmas = sum(found.pixels_by_head), network.sigmas_px
    notes = list(found.notes)
    if model.card is None or not model.card.class_names:
        notes.append(f"the model does not name its classes: they are called {', '.join(frame.class_names)}")
    if not won and not found.gaps:
        notes.append("no tissue was found; --no-tissue looks at everything")
    if least.note is not None:
        notes.append(least.note)
    if tally.cut:
        notes.append(f"{tally.cut} objects were too large and are cut into parts")
    return {
        **identity,
        "results": {
            "objects": {name: int(tally.objects[code]) for code, name in enumerate(frame.class_names)},
            "pixels": {name: int(tally.pixels[code]) for code, name in enumerate(frame.class_names)},
            "classes": [
                {"name": name, "color": list(color)}
                for name, color in zip(frame.class_names, frame.class_colors, strict=True)
            ],
            "skipped_px": found.skipped_px,
            "not_analysed": [[*gap.rows, *gap.columns, gap.reason] for gap in found.gaps],
            "objects_cut": tally.cut,
            "objects_too_small": tally.too_small,
            "min_area": {"um2": least.um2, "px": least.slide_px, "working_px": least.working_px},
            "heads_won": [round(pixels / won, 6) if won else None for pixels in found.pixels_by_head],
            "fusion": network.identity()["fusion"],
            "head_sigmas_px": None if sigmas is None else [[round(value, 4) for value in pair] for pair in sigmas],
            "confidence": round(found.mean_confidence, 6),
        },
        "notes": notes,
        "summary": row,
        "clock": {
            "tiles": found.tiles,
            "tiles_from_before": found.tiles_before,
            "seconds_by_part": {part: round(spent, 2) for part, spent in seconds.items()},
        },
    }


def note_scale(document: dict[str, Any], scale: KnownScale) -> None:
    """The scale in run.json and, in short, in the row of the slide.

    Areas in µm² stay empty where the mpp is estimated: 20 % of a length are 44 % of an area, and a column of numbers
    does not say what it rests on.  Who wants them has the estimate with its interval here.
    """
    facts = scale_facts(scale)
    found = facts["estimate"] or {}
    document["scale"] = facts
    document["notes"] += [] if scale.conflict is None else [f"warning: {scale.conflict}"]
    document["summary"] |= {
        "scale_source": facts["source"],
        "estimated_mpp": "" if found.get("mpp") is None else f"{found['mpp']:g}",
        "mpp_conflict": "" if scale.conflict is None else "yes",
    }


def gap_lines(found: Labelled, name: str, to_level0: float) -> tuple[str, ...]:
    """A line for each of the first regions that could not be read, and how many more there are."""
    lines = []
    for gap in found.gaps[:LINES_SHOWN]:
        x, y, width, height = (
            round(value * to_level0)
            for value in (gap.columns.start, gap.rows.start, gap.columns.length, gap.rows.length)
        )
        lines.append(f"{name}: {width}×{height} px at ({x}, {y}) not analysed: {gap.reason}")
    if len(found.gaps) > LINES_SHOWN:
        lines.append(f"{name}: {len(found.gaps) - LINES_SHOWN} more regions not analysed (255 in labels.tif)")
    return tuple(lines)
