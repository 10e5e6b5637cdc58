"""The tables of the card of `nuclei-2`, beside those of `nuclei`."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.docs import changed
from benchmarks.record import RESULTS, short
from seunet.evaluation import markdown_table

MEASURED = RESULTS / "trials" / "nuclei-2" / "measured"
VARIANTS = {"sizes": "shrunk with averaging to ½ and ¼", "stains": "eosin × 0.7 and × 1.4"}


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
    measured = ", ".join(short(commit) for commit in sorted(commits))
    table = markdown_table(["model", "image", "cases", "within 20 %", "above 2 ×"], rows)
    return f"{table}\n\nMeasured at commit {measured}."


CARD = "src/seunet/pretrained/nuclei-2/README.md"
BLOCKS = {CARD: {"objects": changed.as_they_are, "losses": changed.losses, "agreement": agreement}}
