"""run.json: what went in, what was decided, what came out, what it took; the lines that a user should see; and whether
a result that is there is the one asked for."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import seunet
from seunet.errors import InputError
from seunet.models.files import TrainedModel
from seunet.models.unet_skeleton import ScaleUNet
from seunet.results.cohort import RUN_NAME, UNREADABLE, WORK_NAME, read_document
from seunet.results.find_objects import Tally
from seunet.results.frame import Frame
from seunet.segmentation.label_image import Labelled
from seunet.segmentation.options import AUTO, Choices, LeastArea, scale_name
from seunet.segmentation.scale_choice import KnownScale, ReadingPlan, scale_facts
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
from seunet.storage.output_folder import first_difference

FORMAT: Final = "seunet-run/1"
LINES_SHOWN: Final = 5
CROWDED: Final = 0.8
"""The share of the pixels beyond which objects are doubted; nuclei cover two thirds of the densest tissue."""

OLDER_NOTE: Final = (
    "was made by an earlier edition: objects from 10 px of the network's grid on are listed, and labels.tif is on that "
    "grid; --overwrite makes it anew"
)
FLAGS: Final = {
    "tissue": ("--no-tissue", "--tissue"),
    "split": ("--no-split", "--split"),
    "smooth": ("no --smooth", "--smooth"),
    "probabilities": ("no --probabilities", "--probabilities"),
    "zipped": ("no --gzip", "--gzip"),
    "instances": ("no --instances", "--instances"),
}
"""Options that are on or off, as a user gives them."""


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


def _doubts(found: Labelled, frame: Frame) -> list[str]:
    """A line where objects take nearly all pixels: other images than the model has learnt from look so."""
    analysed = max(sum(found.pixels_by_class), 1)
    shares = {code: found.pixels_by_class[code] / analysed for code in frame.object_codes if code not in frame.regions}
    return [
        f"{frame.class_names[code]} covers {share:.0%} of what was analysed; look at overlay.png: is it H&E, of 8 bits?"
        for code, share in shares.items()
        if share > CROWDED
    ]


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
    notes += _doubts(found, frame)
    if tally.cut:
        notes.append(f"{tally.cut} objects were too large and are cut into parts")
    return {
        **identity,
        # Apart from the identity: the same weights from elsewhere give the same result.
        **({} if model.source is None else {"model_source": model.source}),
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


class Earlier(NamedTuple):
    """A result that is there already: its run.json, and what the user should know of it."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def finished(folder: Path, identity: dict[str, Any]) -> Earlier | None:
    """This very result, or None; an InputError if the folder holds another result."""
    path = folder / RUN_NAME
    if not path.is_file():
        return None
    document = read_document(path)
    if document is None:
        raise InputError(f"{path}: {UNREADABLE}")
    notes = _with_todays_choices(document)
    if (line := _difference(identity, document)) is not None:
        raise InputError(f"{folder}: {line}; pass --overwrite or choose another OUT")
    return Earlier(document, notes)


def forget(folder: Path) -> None:
    """Remove a result, and what was begun of one."""
    (folder / RUN_NAME).unlink(missing_ok=True)
    shutil.rmtree(folder / WORK_NAME, ignore_errors=True)


def _with_todays_choices(document: dict[str, Any]) -> tuple[str, ...]:
    """Give the choices of a result today's names; what was otherwise then, in a sentence."""
    choices = document.get("choices")
    if not isinstance(choices, dict):
        return ()
    choices["scale"] = scale_name(choices.get("scale"))
    if "min_area_px" not in choices:
        return ()
    least_px = choices.pop("min_area_px")
    downsample = document.get("magnification", {}).get("downsample", 1)
    choices["min_area"] = AUTO if least_px == 10 else f"{least_px * downsample**2:g}px"
    return (OLDER_NOTE,)


def _difference(identity: dict[str, Any], document: dict[str, Any]) -> str | None:
    """In which of its options, or else in what, a result differs from the one that is asked for."""
    now, before = (_mpp_text(one.get("image")) for one in (identity, document))
    if now != before:
        return f"holds a result made with {before}, this is {now}"
    different = first_difference(identity, document)
    if different is None:
        return None
    (what, _, field), now, before = different[0].partition("."), *different[1:]
    if what == "choices":
        return f"holds a result made with {_option(field, before)}, this is {_option(field, now)}"
    if what == "seunet":
        return f"holds a result made by seunet {before}, this is {now}"
    if what == "model":
        return "holds a result of another --model"
    where = f"`{field}`" if field else "it"
    return f"holds a result of another {what} ({where} was {str(before)[:60]}, is {str(now)[:60]})"


def _option(name: str, value: Any) -> str:
    """A choice as a user gives it."""
    if name in FLAGS:
        return FLAGS[name][bool(value)]
    return f"--{name.replace('_', '-')} {str(value)[:60]}"


def _mpp_text(image: Any) -> str:
    mpp = image.get("mpp") if isinstance(image, dict) else None
    if not isinstance(mpp, dict):
        return "no µm per pixel stated"
    sides = "×".join(dict.fromkeys(f"{mpp.get(side):g}" for side in "xy"))
    return f"--mpp {sides}" if mpp.get("source") == "user" else f"{sides} µm per pixel ({mpp.get('source')})"
