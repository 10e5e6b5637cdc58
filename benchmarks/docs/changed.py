"""Tables of whole images as they are and changed (measure.model.changed_images)."""

from __future__ import annotations

from typing import Any

from benchmarks.record import results, source
from seunet.evaluation import markdown_table

NAME = "changed_images"
SETS = {
    "monuseg": "MoNuSeg, {images} training images held out",
    "cpm17": "CPM17, {images} images, of no laboratory that was learnt from",
    "tnbc": "TNBC, {images} images of 3 patients left out; 8 others of that laboratory were learnt from",
    "consep": "CoNSeP, {images} test images",
}
COLUMNS = {"aji": "AJI", "pq": "PQ", "f1": "F1", "found_per_true": "objects ÷ true"}
TOLD_NOTHING, STATED, SCRIPT, AS_IT_IS = "told nothing", "mpp stated", "script", "as it is"


def as_they_are() -> str:
    """A row per set and system: IoU, AJI, PQ, F1 and how many objects."""
    report = results(NAME)
    first = next(iter(report["models"].values()))["sets"]
    rows = []
    for name, measured in first.items():
        title = SETS[name].format(images=measured["images"])
        rows.append([title, "a script, told nothing", *_cells(_score(measured, SCRIPT, AS_IT_IS))])
        for label, model in report["models"].items():
            for way in (TOLD_NOTHING, STATED):
                rows.append(["", f"`{label}`, {way}", *_cells(_score(model["sets"][name], way, AS_IT_IS))])
    return f"{markdown_table(['', '', 'IoU, %', *COLUMNS.values()], rows)}\n\n{source(report)}"


def losses() -> str:
    """Points of IoU that each change costs, told nothing / with the mpp stated."""
    report = results(NAME)
    changes = [row["change"] for row in _rows(report) if row["way"] == STATED and row["change"] != AS_IT_IS]
    rows = [
        [SETS[name].split(",")[0], f"`{label}`", *(_loss(model["sets"][name], change) for change in changes)]
        for name in next(iter(report["models"].values()))["sets"]
        for label, model in report["models"].items()
    ]
    return f"{markdown_table(['', 'model', *changes], rows)}\n\n{source(report)}"


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(iter(next(iter(report["models"].values()))["sets"].values()))["scores"]
    return found


def _score(measured: dict[str, Any], way: str, change: str) -> dict[str, Any] | None:
    return next((row for row in measured["scores"] if (row["way"], row["change"]) == (way, change)), None)


def _cells(score: dict[str, Any] | None) -> list[str]:
    if score is None:
        return ["–"] * (1 + len(COLUMNS))
    return [f"{100 * score['iou']:.1f}", *(f"{score[column]:.2f}" for column in COLUMNS)]


def _loss(measured: dict[str, Any], change: str) -> str:
    cells = []
    for way in (TOLD_NOTHING, STATED):
        changed, before = (_score(measured, way, each) for each in (change, AS_IT_IS))
        if changed is not None and before is not None:
            cells.append(f"{100 * (changed['iou'] - before['iou']):+.1f}")
    return " / ".join(cells)
