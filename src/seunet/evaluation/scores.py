"""From confusion matrices to the numbers of a table: Markdown in the layout of the paper's table 1, and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from seunet.evaluation.page import markdown_table
from seunet.evaluation.predictors import ways_of_predicting
from seunet.evaluation.provenance import source_line
from seunet.evaluation.test_scales import scale_label
from seunet.maths.confusion import class_iou, headline_iou

BEST_HEAD: Final = "best head (oracle)"
"""The head that is best at each scale: what the filters can do where a choice among them is left to an oracle."""

DIGITS: Final = 6


def scores(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A row of a table for each head and fusion of each way: {"way", "row", "label", "ious" per scale, "mean"}."""
    rows: list[dict[str, Any]] = []
    for way in ways_of_predicting(document["arguments"]["ways"]):
        found = {row["scale"]: row["confusions"] for row in document["results"] if row["way"] == way.name}
        at_scales = [found.get(scale) for scale in document["arguments"]["scales"]]
        names = list(next(confusions for confusions in at_scales if confusions is not None))
        ious = {
            name: [None if confusions is None else _headline(confusions[name]) for confusions in at_scales]
            for name in names
        }
        heads = [name for name in names if name not in document["arguments"]["fusions"]]
        rows += [_row(way.name, way.label, name, ious[name], head=name in heads) for name in names]
        if len(heads) > 1:
            best = [_largest([ious[name][place] for name in heads]) for place in range(len(at_scales))]
            rows.append(_row(way.name, way.label, BEST_HEAD, best, head=False))
    return rows


def _row(way: str, label: str, name: str, ious: list[float | None], head: bool) -> dict[str, Any]:
    known = [iou for iou in ious if iou is not None]
    mean = round(sum(known) / len(known), DIGITS) if len(known) == len(ious) else None
    return {"way": way, "row": name, "label": f"{label}{name}", "head": head, "ious": ious, "mean": mean}


def _headline(confusion: list[list[int]]) -> float | None:
    return _rounded(headline_iou(torch.tensor(confusion)))


def _rounded(value: float) -> float | None:
    """JSON has no NaN: a class that is neither there nor predicted has no IoU."""
    return None if math.isnan(value) else round(value, DIGITS)


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def metric_name(document: dict[str, Any]) -> str:
    """What the numbers are: the IoU of the one foreground class, or the mean over the classes."""
    classes = document["data"]["classes"]
    return f"IoU of {classes[1]}" if len(classes) == 2 else f"mIoU of {len(classes)} classes"


def markdown(document: dict[str, Any]) -> str:
    """Rows of heads and fusions, columns of scales, and the mean; the best head at each scale in bold."""
    data, model, rows = document["data"], document["model"], document["scores"]
    intro = (
        f"# {model['name']} on {data['dataset']}, {data['split']}\n\n"
        f"{metric_name(document)} in percent, {data['windows']} windows, images: {len(data['images'])}, "
        f"{model['parameters']:,} parameters. One confusion matrix per scale over all pixels; the best head in bold.\n"
    )
    header = ["test scale", *map(scale_label, document["arguments"]["scales"]), "mean"]
    lines = []
    for row in rows:
        rivals = [other for other in rows if other["head"] and other["way"] == row["way"]]
        cells = [
            _cell(iou, row["head"] and len(rivals) > 1 and iou == _largest([other["ious"][place] for other in rivals]))
            for place, iou in enumerate(row["ious"])
        ]
        lines.append([row["label"], *cells, _cell(row["mean"], False)])
    notes = [f"Note: {note}." for note in document["notes"]]
    end = [*notes, *([""] if notes else []), source_line(document)]
    return "\n".join([intro, markdown_table(header, lines), "", *end]) + "\n"


def _cell(iou: float | None, bold: bool) -> str:
    text = "–" if iou is None else f"{100 * iou:.2f}"
    return f"**{text}**" if bold else text


def comma_separated(document: dict[str, Any]) -> str:
    """A line for each way, scale and row, with the IoU of every class."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    classes = document["data"]["classes"]
    table.writerow(["way", "row", "scale", "size_px", "pixels", "iou", *(f"iou_{name}" for name in classes)])
    for result in document["results"]:
        for name, counts in result["confusions"].items():
            confusion = torch.tensor(counts)
            ious = [_rounded(float(value)) for value in class_iou(confusion)]
            place = [result["way"], name, f"{result['scale']:.6g}", result["size_px"], int(confusion.sum())]
            table.writerow([*place, _headline(counts), *ious])
    return out.getvalue()
