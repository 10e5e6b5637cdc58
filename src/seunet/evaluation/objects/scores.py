"""From the scores of images to those of a set, as numbers and as a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.evaluation.page import markdown_table
from seunet.evaluation.provenance import source_line
from seunet.evaluation.test_scales import scale_label
from seunet.maths.object_overlaps import instance_scores, overlaps

DIGITS: Final = 6
MEANS: Final = ("aji", "pq", "dq", "sq")
LABELS: Final = {"estimated": "told nothing", "stated": "mpp stated"}


def image_scores(truth: NDArray[Any], found: NDArray[Any], ignored: NDArray[np.bool_]) -> dict[str, Any]:
    """Of one image; what is to be ignored belongs to no object."""
    truth, found = (np.where(ignored, 0, numbers) for numbers in (truth, found))
    scores = instance_scores(overlaps(truth, found))
    both, either = ((truth > 0) & (found > 0)).sum(), ((truth > 0) | (found > 0)).sum()
    values = {name: None if math.isnan(value) else value for name, value in scores._asdict().items()}
    rounded = {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}
    return {**rounded, "both_px": int(both), "either_px": int(either)}


def set_scores(images: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """IoU and F1 over all pixels and all objects; AJI, PQ, DQ and SQ as means over the images that have them."""
    means: dict[str, Any] = {}
    for name in MEANS:
        known = [image[name] for image in images if image[name] is not None]
        means[name] = round(sum(known) / len(known), DIGITS) if known else None
    pairs, true, found, both, either = (
        sum(image[name] for image in images) for name in ("pairs", "true", "found", "both_px", "either_px")
    )
    return {
        "iou": _ratio(both, either),
        **means,
        "f1": _ratio(2 * pairs, true + found),
        "true": true,
        "found": found,
        "found_per_true": _ratio(found, true),
    }


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, DIGITS) if whole else None


def summary(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each way and scale, and the mean over the scales where there are several."""
    rows = []
    for way in document["arguments"]["ways"]:
        own = [
            {"way": way, "scale": result["scale"], **set_scores(list(result["by_image"].values()))}
            for result in document["results"]
            if result["way"] == way
        ]
        rows += own
        if len(own) > 1:
            rows.append({"way": way, "scale": None, **_mean(own)})
    return rows


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    result = {}
    for name in ("iou", *MEANS, "f1", "found_per_true"):
        known = [row[name] for row in rows if row[name] is not None]
        result[name] = round(sum(known) / len(known), DIGITS) if known else None
    return {**result, "true": sum(row["true"] for row in rows), "found": sum(row["found"] for row in rows)}


HEADER: Final = ("", "s", "IoU", "AJI", "PQ", "DQ", "SQ", "F1 at IoU 0.5", "objects ÷ true")


def table_rows(document: dict[str, Any]) -> list[list[str]]:
    """What `HEADER` heads."""
    return [
        [
            LABELS[row["way"]],
            "mean" if row["scale"] is None else scale_label(row["scale"]),
            "–" if row["iou"] is None else f"{100 * row['iou']:.2f}",
            *("–" if row[name] is None else f"{row[name]:.3f}" for name in (*MEANS, "f1")),
            "–" if row["found_per_true"] is None else f"{row['found_per_true']:.2f}",
        ]
        for row in document["scores"]
    ]


def markdown(document: dict[str, Any]) -> str:
    """objects.md"""
    data, model = document["data"], document["model"]
    shrunk = "with averaging" if document["arguments"]["antialias"] else "as in the paper, without averaging"
    intro = (
        f"# Objects of {model['name']} on {data['dataset']}, {data['split']}\n\n"
        f"Whole images: {len(data['images'])}, found as `seunet segment` finds them. IoU (in percent) and F1 over all "
        f"pixels and objects, AJI, PQ, DQ and SQ as means over the images. Images are shrunk {shrunk}.\n"
    )
    notes = [f"Note: {note}." for note in document["notes"]]
    lines = [intro, markdown_table(HEADER, table_rows(document)), "", *notes, *([""] if notes else [])]
    return "\n".join([*lines, source_line(document)]) + "\n"


COLUMNS: Final = ("iou", *MEANS, "pairs", "true", "found", "relative_scale")


def comma_separated(document: dict[str, Any]) -> str:
    """objects.csv: a line for each way, scale and image."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["way", "scale", "image", *COLUMNS])
    for result in document["results"]:
        for image, values in result["by_image"].items():
            row = {**values, "iou": _ratio(values["both_px"], values["either_px"])}
            table.writerow([result["way"], f"{result['scale']:.6g}", image, *(row[name] for name in COLUMNS)])
    return out.getvalue()
