"""The per-scale curve, of one report with its heads or of several models side by side (the paper's figure 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seunet.errors import InputError, check_known
from seunet.evaluation.figures.style import COLORS, QUIET, new_figure, open_frame, scale_axis
from seunet.evaluation.scores import BEST_HEAD, metric_name
from seunet.evaluation.test_scales import scale_label
from seunet.results.pictures.legend import shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_PX, HEIGHT_PX = 1600, 960
MARKERS: Final = "osD^v"
"""A curve that looks like one before it has the next: there are eight colours and may be more curves."""


class Curve(NamedTuple):
    """A line: its name, IoU at each scale, and how it looks."""

    label: str
    scales: list[float]
    ious: list[float | None]
    color: Any
    width: float = 2.0
    style: str = "-"
    band: list[tuple[float, float]] | None = None
    """The interval at each scale."""


def main_row(document: dict[str, Any], way: str) -> str:
    """The row that stands for a way: p_ens, or the last fusion there is, or the only prediction."""
    rows = [row["row"] for row in document["scores"] if row["way"] == way and row["row"] != BEST_HEAD]
    return "p_ens" if "p_ens" in rows else rows[-1]


def row_of(document: dict[str, Any], way: str, name: str) -> dict[str, Any]:
    """One row of the scores."""
    rows: dict[str, dict[str, Any]] = {row["row"]: row for row in document["scores"] if row["way"] == way}
    check_known("row", name, rows)
    return rows[name]


def own_curves(document: dict[str, Any]) -> list[Curve]:
    """Heads of the model as trained, thin from fine to coarse; then for each way its fusion and its best head."""
    scales = document["arguments"]["scales"]
    heads = [row for row in document["scores"] if row["way"] == "blind" and row["head"]]
    curves = []
    if len(heads) > 1:
        for row, color in zip(heads, shades(len(heads)), strict=True):
            curves.append(Curve(row["label"], scales, row["ious"], color, 1.1))
    for way, strong in zip(document["arguments"]["ways"], COLORS, strict=False):
        main = row_of(document, way, main_row(document, way))
        curves.append(Curve(main["label"], scales, main["ious"], strong, 2.6))
        best = [row for row in document["scores"] if row["way"] == way and row["row"] == BEST_HEAD]
        if best and way in ("blind", "scaled_filters"):
            curves.append(Curve(best[0]["label"], scales, best[0]["ious"], strong, 1.8, ":"))
    return curves


def rival_curves(
    documents: Sequence[dict[str, Any]], labels: Sequence[str] = (), row: str | None = None, way: str = "blind"
) -> list[Curve]:
    """One line per report: `row` of `way`, or the row that stands for it."""
    if labels and len(labels) != len(documents):
        raise InputError(f"{len(labels)} labels for {len(documents)} reports; give one per report")
    metrics = {metric_name(document) for document in documents}
    if len(metrics) > 1:
        raise InputError(f"the reports measure different things ({', '.join(sorted(metrics))}); draw them apart")
    curves = []
    for place, document in enumerate(documents):
        check_known("way in the report", way, document["arguments"]["ways"])
        name = main_row(document, way) if row is None or document["model"]["heads"] == 1 else row
        found = row_of(document, way, name)
        label = labels[place] if labels else f"{document['model']['name']}, {found['label']}"
        curves.append(Curve(label, document["arguments"]["scales"], found["ious"], COLORS[place % len(COLORS)], 2.4))
    return curves


def curves_figure(curves: Sequence[Curve], metric: str, title: str) -> Figure:
    """IoU against test scale, named with the mean over the scales."""
    figure = new_figure(WIDTH_PX, HEIGHT_PX)
    axis = figure.add_subplot()
    alike: Counter[tuple[Any, str]] = Counter()
    for curve in curves:
        marker = MARKERS[alike[curve.color, curve.style] % len(MARKERS)]
        alike[curve.color, curve.style] += 1
        values = [float("nan") if iou is None else 100 * iou for iou in curve.ious]
        axis.plot(
            curve.scales,
            values,
            curve.style,
            color=curve.color,
            linewidth=curve.width,
            marker=marker,
            markersize=(2 if marker == "o" else 5) + curve.width,
            label=f"{curve.label}  ({sum(values) / len(values):.1f})",
        )
        if curve.band is not None:
            low, high = ([100 * end for end in ends] for ends in zip(*curve.band, strict=True))
            axis.fill_between(curve.scales, low, high, color=curve.color, alpha=0.12, linewidth=0)
    longest = max((curve.scales for curve in curves), key=len)
    scale_axis(axis, longest, [scale_label(scale) for scale in longest])
    open_frame(axis)
    axis.axvline(1, color=QUIET, linewidth=0.8, linestyle=(0, (4, 4)))
    axis.set_ylabel(f"{metric} in %")
    axis.set_title(title, loc="left", fontweight="bold")
    figure.legend(
        loc="outside right center", frameon=False, title="row (mean over the scales)", alignment="left", handlelength=4
    )
    return figure
