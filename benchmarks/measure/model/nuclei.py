r"""Ship a trained run as the model `nuclei` of the package, with what was measured on it.

    seunet train configs/nuclei.yaml -o runs/nuclei-first-stage
    seunet train configs/nuclei-second-stage.yaml -o RUN
    python -m benchmarks.measure.model.nuclei --export RUN MODEL   # the weights the run ended with
    seunet evaluate MODEL prepared/monuseg -o HELD_OUT --split train --images NAMES --tiles 500,500,4 \
        --scaled-filters --resampled
    python -m benchmarks.measure.model.nuclei --ship RUN HELD_OUT
    python -m benchmarks.measure.model.calibrate_heads prepared/monuseg --images NAMES --write
    python -m benchmarks.measure.segmentation.told_or_not prepared/monuseg -o TOLD --unet UNET_RUN --tiles 500,500,4
    python -m benchmarks.measure.model.nuclei --test TOLD/seunet
    python -m benchmarks.docs

What the card says of scales is decided on the held-out training images.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from benchmarks.declare import RUN_OF_NUCLEI, Benchmark
from benchmarks.measure.model.training_runs import keep
from benchmarks.record import RESULTS
from seunet.data import read_manifest
from seunet.evaluation import read_report
from seunet.evaluation.fitting import range_around_one
from seunet.maths import FUSIONS
from seunet.models import load
from seunet.pretrained import BUILT_IN
from seunet.storage import atomic_path
from seunet.training import card_of, model_of, read_checkpoint

BENCHMARK = Benchmark(
    "measure.model.nuclei",
    ("results/nuclei", "src/seunet/pretrained/nuclei"),
    1,
    arguments="--ship runs/nuclei-second-stage out/held-out",
    needs=(RUN_OF_NUCLEI, "out/held-out"),
)

KEPT = RESULTS / "nuclei"
STAGES = (KEPT / "first-stage", KEPT / "second-stage")
SHIPPED = BUILT_IN / "nuclei"
TOLERANCE = 0.005
"""Half a point of IoU: a few images show no less, and leaving the pixels alone costs nothing."""
TRAINED_ON = "MoNuSeg: the 30 training images of 1000 × 1000 pixels at 40 ×, six of them held out to choose by"
LICENCE = "CC BY-NC-SA 4.0 (MoNuSeg): not for commercial use"


def ious(report: dict[str, Any], way: str, row: str) -> dict[float, float]:
    """IoU by test scale."""
    (found,) = (line for line in report["scores"] if (line["way"], line["row"]) == (way, row))
    return dict(zip(report["arguments"]["scales"], found["ious"], strict=True))


def scaled_filters_range(held_out: dict[str, Any]) -> tuple[float, float]:
    """The scales around 1 at which scaling the filters is as good as resampling the image."""
    head = f"head {matched_head(held_out)}"
    scaled, resampled = ious(held_out, "scaled_filters", head), ious(held_out, "resampled", head)
    scales = sorted(scaled)
    good = [scaled[scale] >= resampled[scale] - TOLERANCE for scale in scales]
    return range_around_one(scales, good)


def matched_head(held_out: dict[str, Any]) -> int:
    """The head that is best, on average, where the image has the scale of the training; counted from 1."""
    means = {
        int(line["row"].removeprefix("head ")): line["mean"]
        for line in held_out["scores"]
        if line["way"] == "resampled" and line["row"].startswith("head ")
    }
    return max(means, key=lambda number: means[number])


def blind_fusion(held_out: dict[str, Any]) -> str:
    """The paper's fusion that is best, on average, where the scale is not known."""
    means = {name: fmean(ious(held_out, "blind", name).values()) for name in FUSIONS}
    return max(means, key=lambda name: means[name])


def kept(name: str) -> dict[str, Any]:
    return read_report(KEPT / f"{name}.json", "evaluation")


def keep_report(folder: Path, name: str) -> None:
    """Copy what `seunet evaluate` left to results/nuclei."""
    read_report(folder / "evaluation.json", "evaluation")
    with atomic_path(KEPT / f"{name}.json") as part:
        shutil.copyfile(folder / "evaluation.json", part)


def export(run: Path, folder: Path) -> None:
    """The averaged weights that a run ended with; what it held to be best is by P_Ens, and one head is what is used."""
    model_of(read_checkpoint(run / "last.safetensors")).save_pretrained(folder, overwrite=True)


def ship(run: Path, held_out: Path) -> None:
    """Copy report and logs to results/nuclei, and the weights with their card into the package."""
    first_stage = Path(yaml.safe_load((run / "config.yaml").read_text())["start"]).parent
    for stage, place in zip((first_stage, run), STAGES, strict=True):
        keep(stage, place)
    keep_report(held_out, "held-out")
    model = model_of(read_checkpoint(run / "last.safetensors"))
    model.scale_estimator = load(SHIPPED).scale_estimator
    root = Path(yaml.safe_load((run / "config.yaml").read_text())["data"]["root"])
    facts = {
        "scaled_filters_range": scaled_filters_range(kept("held-out")),
        "matched_head": matched_head(kept("held-out")),
        "blind_fusion": blind_fusion(kept("held-out")),
        "trained_on": TRAINED_ON,
        "licence": LICENCE,
    }
    model.card = card_of(read_manifest(root), model.classes).model_copy(update=facts)
    model.save_pretrained(SHIPPED, overwrite=True)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--export", nargs=2, type=Path, metavar=("RUN", "MODEL"))
    made.add_argument("--ship", nargs=2, type=Path, metavar=("RUN", "HELD_OUT"))
    made.add_argument("--test", type=Path, metavar="TEST")
    made.add_argument("--speed", type=Path, metavar="REPORT", help="of a blind run, for its time and memory")
    return made


def main() -> None:
    given = parser().parse_args()
    if given.export:
        export(*given.export)
    if given.ship:
        ship(*given.ship)
    if given.test:
        keep_report(given.test, "test")
    if given.speed:
        keep_report(given.speed, "evaluation-speed")


if __name__ == "__main__":
    main()
