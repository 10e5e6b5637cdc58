"""The table of the card of `nuclei-2`: objects as `seunet segment` finds them, beside those of `nuclei`."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.record import RESULTS
from seunet.evaluation import markdown_table

MEASURED = RESULTS / "trials" / "nuclei-2" / "measured"
SETS = {
    "tnbc": "TNBC, 13 images of 3 patients left out; 8 others of that laboratory were learnt from",
    "cpm17": "CPM17, 64 images of no laboratory that was trained on",
    "monuseg": "MoNuSeg, 6 training images held out",
}
VARIANTS = {"sizes": "shrunk with averaging to ½ and ¼", "stains": "eosin × 0.7 and × 1.4"}
ROWS = {"nuclei-2-odds-0.6": "the same, parted from odds of 0.6 on"}
COLUMNS = {"iou": "IoU, %", "aji": "AJI", "pq": "PQ", "f1": "F1", "found_per_true": "objects ÷ true"}


def objects() -> str:
    """A row per set and model, told nothing."""
    rows, commits = [], set()
    for name, title in SETS.items():
        for model in ("nuclei", "nuclei-2", "nuclei-2-odds-0.6"):
            document: dict[str, Any] = json.loads((MEASURED / f"{name}-{model}.json").read_text())
            (score,) = document["scores"]
            cells = [f"{100 * score['iou']:.1f}", *(f"{score[column]:.2f}" for column in list(COLUMNS)[1:])]
            rows.append([title if model == "nuclei" else "", ROWS.get(model, f"`{model}`"), *cells])
            commits |= set(document["commits"])
    measured = ", ".join(f"`{commit[:12]}`" for commit in sorted(commits))
    return f"{markdown_table(['', 'model', *COLUMNS.values()], rows)}\n\nMeasured at commit {measured}."


def agreement() -> str:
    """How far each model agrees with itself, no masks needed."""
    rows, commits = [], set()
    for model in ("nuclei", "nuclei-2"):
        document: dict[str, Any] = json.loads((MEASURED / f"agreement-{model}.json").read_text())
        for score in document["scores"]:
            if score["variant"] in VARIANTS:
                within, doubled = f"{100 * score['within_20_percent']:.0f} %", str(score["above_2_times"])
                rows.append([f"`{model}`", VARIANTS[score["variant"]], str(score["cases"]), within, doubled])
        commits |= set(document["commits"])
    measured = ", ".join(f"`{commit[:12]}`" for commit in sorted(commits))
    table = markdown_table(["model", "image", "cases", "within 20 %", "above 2 ×"], rows)
    return f"{table}\n\nMeasured at commit {measured}."


BLOCKS = {"src/seunet/pretrained/nuclei-2/README.md": {"objects": objects, "agreement": agreement}}
