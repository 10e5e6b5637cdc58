r"""Choose how far each head of `nuclei` is believed, on training images that were held out of its training.

    python -m benchmarks.measure.model.calibrate_heads PREPARED --images NAME,… [--model nuclei] [--write]

What `seunet calibrate` does with a model of one's own.
Writes results/benchmarks/calibrate_heads.json, and with `--write` the calibration into the card of the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from seunet.cli import names
from seunet.evaluation.fitting import SCALES, chosen_heads, images_to_fit, sampled_heads
from seunet.models import load, model_folder, weights_sha256

HELD_OUT = (
    "TCGA-18-5592-01Z-00-DX1",
    "TCGA-50-5931-01Z-00-DX1",
    "TCGA-AY-A8YK-01A-01-TS1",
    "TCGA-DK-A2I6-01A-01-TS1",
    "TCGA-G9-6348-01Z-00-DX1",
    "TCGA-HE-7129-01Z-00-DX1",
)
"""Training images that the shipped weights did not see."""
BENCHMARK = Benchmark(
    "measure.model.calibrate_heads",
    ("results/benchmarks/calibrate_heads.json",),
    10,
    arguments=f"prepared/monuseg --images {','.join(HELD_OUT)}",
    needs=(MONUSEG,),
)

TILES_PX = (500, 500, 4)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("--images", required=True)
    made.add_argument("--model", default="nuclei")
    made.add_argument("--write", action="store_true")
    return made


def main() -> None:
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    model = load(arguments.model)
    entries = images_to_fit(arguments.prepared, model, names(arguments.images))
    samples = sampled_heads(model, arguments.prepared, entries, TILES_PX)
    found = chosen_heads(samples)
    figures = {
        "weights_sha256": weights_sha256(model),
        "images": [entry.name for entry in entries],
        "scales": list(SCALES),
        "pixels": sum(len(sample.classes) for sample in samples),
        "chosen": found.candidates,
        "matched_head": found.matched_head,
        "scaled_filters_range": list(found.scaled_filters_range),
        "blind_fusion": found.blind_fusion,
        "calibration": found.calibration.model_dump(mode="json"),
        "iou_left_out": found.ious,
    }
    print(write_results(BENCHMARK, figures))
    if arguments.write:
        assert model.card is not None, "the model has no card"
        model.card = model.card.model_copy(update={"calibration": found.calibration})
        model.save_pretrained(model_folder(arguments.model))


if __name__ == "__main__":
    main()
