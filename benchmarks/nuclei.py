r"""Ship a trained run as the model `nuclei` of the package, with what was measured on it.

    seunet train configs/nuclei-own.yaml -o runs/nuclei-own
    seunet train configs/nuclei-together.yaml -o runs/nuclei-together
    seunet evaluate RUN/model prepared/monuseg -o HELD_OUT --split train --images NAMES \
        --tiles 500,500,4 --told --oracle
    python -m benchmarks.nuclei HELD_OUT RUN …       # the runs in their order; the last one's weights are shipped
    seunet evaluate nuclei prepared/monuseg -o TEST --tiles 500,500,4 --told --oracle
    python -m benchmarks.nuclei --test TEST
    python -m benchmarks.docs

What the card says of scales is decided on the held-out training images.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.record import ROOT
from benchmarks.training_runs import keep
from seunet.atomic import atomic_path
from seunet.data.manifest import read_manifest
from seunet.evaluation.report_folder import read_report
from seunet.models.files import BUILT_IN, load
from seunet.training.building import card_of

KEPT = ROOT / "docs" / "results" / "nuclei"
SHIPPED = BUILT_IN / "nuclei"
FUSION = "p_ens"
TOLERANCE = 0.005
"""Half a point of IoU: less cannot be told on a few images, and leaving the pixels alone costs nothing."""
TRAINED_ON = "MoNuSeg: the 30 training images of 1000 × 1000 pixels at 40 ×, six of them held out to choose by"
LICENCE = "CC BY-NC-SA 4.0 (MoNuSeg): not for commercial use"


def ious(report: dict[str, Any], way: str, row: str = FUSION) -> dict[float, float]:
    """IoU by test scale."""
    (found,) = (line for line in report["scores"] if (line["way"], line["row"]) == (way, row))
    return dict(zip(report["arguments"]["scales"], found["ious"], strict=True))


def told_range(held_out: dict[str, Any]) -> tuple[float, float]:
    """The scales around 1 at which scaling the filters is as good as resampling the image."""
    told, resampled = ious(held_out, "told"), ious(held_out, "oracle")
    good = [scale for scale in told if told[scale] >= resampled[scale] - TOLERANCE]
    low = high = 1.0
    for scale in sorted((scale for scale in told if scale < 1), reverse=True):
        if scale not in good:
            break
        low = scale
    for scale in sorted(scale for scale in told if scale > 1):
        if scale not in good:
            break
        high = scale
    return low, high


def kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((KEPT / f"{name}.json").read_text())
    return found


def keep_report(folder: Path, name: str) -> None:
    """Copy what `seunet evaluate` left to docs/results/nuclei."""
    read_report(folder / "evaluation.json", "evaluation")
    with atomic_path(KEPT / f"{name}.json") as part:
        shutil.copyfile(folder / "evaluation.json", part)


def kept_runs() -> list[Path]:
    """The logs of the runs that led to the weights, in their order."""
    return sorted(KEPT.glob("run-*"))


def ship(held_out: Path, runs: Sequence[Path]) -> None:
    """Copy reports and logs to docs/results/nuclei, and the last weights with their card into the package."""
    for number, run in enumerate(runs, start=1):
        keep(run, KEPT / f"run-{number}")
    keep_report(held_out, "held-out")
    last = runs[-1]
    model = load(last / "model")
    model.scale_estimator = load(SHIPPED).scale_estimator
    root = Path(yaml.safe_load((last / "config.yaml").read_text())["data"]["root"])
    facts = {"told_range": told_range(kept("held-out")), "trained_on": TRAINED_ON, "licence": LICENCE}
    model.card = card_of(read_manifest(root), model.classes).model_copy(update=facts)
    model.save_pretrained(SHIPPED)


if __name__ == "__main__":
    if sys.argv[1] == "--test":
        keep_report(Path(sys.argv[2]), "test")
    else:
        first, *others = (Path(argument) for argument in sys.argv[1:])
        ship(first, others)
