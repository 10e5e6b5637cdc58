r"""What is lost when the magnification is not stated: blind, estimated, stated; and a plain UNet likewise.

    python -m benchmarks.measure.segmentation.told_or_not PREPARED -o OUT --unet RUN [--tiles 500,500,4]
    python -m benchmarks.measure.segmentation.told_or_not PREPARED -o OUT --split train --images NAMES --estimator DIR

The second on held-out training images, with an estimator that never saw them (`measure.scale.fit --without`).
Each model is evaluated into a folder of OUT, and an interrupted command goes on.  Writes the section of the split in
results/benchmarks/told_or_not.json, and keeps the log of the UNet's RUN.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.declare import MONUSEG, RUN_OF_UNET, Benchmark
from benchmarks.measure.model.training_runs import keep
from benchmarks.record import MEASURED, RESULTS, commit, write_results
from seunet.cli import names, tile_sizes
from seunet.evaluation import TEST_SCALES, EvaluationSettings, evaluate, parsed_scales
from seunet.maths import CALIBRATED
from seunet.models import AUTO, ScaleUNet, fusion_of, known_fusions, load
from seunet.scale import load_estimator, shipped_estimator

BENCHMARK = Benchmark(
    "measure.segmentation.told_or_not",
    ("results/benchmarks/told_or_not.json", "results/told-or-not"),
    45,
    arguments="prepared/monuseg -o out/told --unet runs/unet-second-stage --tiles 500,500,4",
    needs=(MONUSEG, RUN_OF_UNET),
)

NAME = "told_or_not"
UNET_RUN = RESULTS / "told-or-not" / "unet-second-stage"
SEUNET_WAYS = ("blind", "stated", "estimated")
UNET_WAYS = ("blind", "stated", "estimated")


def matched_head(model: ScaleUNet) -> str | None:
    """The head that is enough where the scale is known, as the card says."""
    return None if model.card is None or model.card.matched_head is None else f"head {model.card.matched_head}"


def chosen_rows(report: dict[str, Any], name: str, head: str | None) -> list[dict[str, Any]]:
    """The rows of the table: fusions of every way, and the matched head where the scale is known."""
    rows = []
    for row in report["scores"]:
        own = row["row"] in ("p_ens", "p_dist", "mean", CALIBRATED, "prediction")
        matched = row["row"] == head and row["way"] != "blind"
        if own or matched:
            how = "matched head" if matched else row["row"]
            kept = {key: row[key] for key in ("way", "ious", "mean")}
            rows.append({"model": name, "how": how, **kept})
    return rows


def estimate_errors(report: dict[str, Any]) -> dict[str, Any]:
    """Estimated over true scale: the median factor off, and how many had no answer."""
    factors, asked = [], 0
    for result in report["results"]:
        for each in result.get("estimates", {}).values():
            asked += 1
            if each["scale"] is not None:
                ratio = each["scale"] / result["scale"]
                factors.append(max(ratio, 1 / ratio))
    return {"asked": asked, "answered": len(factors), "median_factor": round(median(factors), 3) if factors else None}


def section(
    reports: dict[str, dict[str, Any]], heads: dict[str, str | None], blind_fusion: str, arguments: Any
) -> dict[str, Any]:
    """What is kept of the reports of one split."""
    first = next(iter(reports.values()))
    data = first["data"]
    return {
        "commit": commit(),
        "split": data["split"],
        "images": data["images"],
        "windows": data["windows"],
        "window_px": data["window_px"],
        "estimator_never_saw_the_images": arguments.estimator is not None or data["split"] == "test",
        "scales": first["arguments"]["scales"],
        "models": {
            name: {"weights_sha256": report["model"]["weights_sha256"], "parameters": report["model"]["parameters"]}
            for name, report in reports.items()
        },
        "blind_fusion": blind_fusion,
        "estimates": {name: estimate_errors(report) for name, report in reports.items()},
        "rows": [row for name, report in reports.items() for row in chosen_rows(report, name, heads[name])],
        "seconds": {name: round(report["clock"]["seconds"]) for name, report in reports.items()},
    }


def sections() -> dict[str, Any]:
    """What was written before, by split."""
    path = MEASURED / f"{NAME}.json"
    found: dict[str, Any] = json.loads(path.read_text())["splits"] if path.is_file() else {}
    return found


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("-o", "--out", type=Path, required=True)
    made.add_argument("--model", default="nuclei")
    made.add_argument("--unet", type=Path)
    made.add_argument("--split", default="test")
    made.add_argument("--images")
    made.add_argument("--tiles")
    made.add_argument("--scales")
    made.add_argument("--estimator", type=Path)
    made.add_argument("--head", type=int, help="the head that learnt at s = 1, from 1; default: as calibrated")
    return made


def main(given: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(given)
    torch.set_num_threads(1)
    models = {"SEUNet": (load(arguments.model), SEUNET_WAYS)}
    if arguments.unet is not None:
        keep(arguments.unet, UNET_RUN)
        models["UNet"] = (load(arguments.unet / "model"), UNET_WAYS)
    reports = {}
    for name, (model, ways) in models.items():
        settings = EvaluationSettings(
            split=arguments.split,
            images=names(arguments.images),
            tiles_px=tile_sizes(arguments.tiles),
            scales=TEST_SCALES if arguments.scales is None else parsed_scales(arguments.scales),
            ways=ways,
            fusions=known_fusions(model),
            estimator=shipped_estimator() if arguments.estimator is None else load_estimator(arguments.estimator),
        )
        print(name, flush=True)
        shown: list[str] = []

        def tell(done: int, total: int, text: str, shown: list[str] = shown) -> None:
            if not shown or shown[-1] != text:
                shown.append(text)
                print(f"{100 * done // total} % {text}", flush=True)

        reports[name] = evaluate(model, arguments.prepared, arguments.out / name.lower(), settings, progress=tell)
    heads = {name: matched_head(model) for name, (model, _) in models.items()}
    if arguments.head is not None:
        heads["SEUNet"] = f"head {arguments.head}"
    blind_fusion = str(fusion_of(models["SEUNet"][0], AUTO, scale_known=False))
    found = section(reports, heads, blind_fusion, arguments)
    write_results(BENCHMARK, {"splits": sections() | {arguments.split: found}})


if __name__ == "__main__":
    main()
