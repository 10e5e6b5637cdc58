"""Fit the scale estimator on the training images of a prepared set.

    python -m benchmarks.measure.scale.fit PREPARED -o src/seunet/pretrained/nuclei [--cache FOLDER]
    python -m benchmarks.measure.scale.fit PREPARED -o FOLDER --without NAME,…

Only the training split is read.  Limits and intervals come from images that were left out, organ by organ: an image
of a user is of other tissue, from another laboratory.
Writes scale.safetensors and scale.json, and results/benchmarks/fit_scale.json with what leaving out gave.
With `--without` it makes an estimator that never saw some images, to be measured on those, and no results.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.samples import images_of
from benchmarks.record import write_results
from seunet.data import read_manifest
from seunet.evaluation.fitting import (
    LeftOut,
    Observed,
    error_scores,
    fitted_templates,
    left_out,
    limits_of,
    observed,
    read_samples,
)
from seunet.scale import ScaleEstimator, save_estimator

BENCHMARK = Benchmark(
    "measure.scale.fit",
    (
        "results/benchmarks/fit_scale.json",
        "src/seunet/pretrained/nuclei/scale.safetensors",
        "src/seunet/pretrained/nuclei/scale.json",
    ),
    20,
    arguments="prepared/monuseg -o src/seunet/pretrained/nuclei --cache out/scale",
    needs=(MONUSEG,),
)

MPP = 0.25
VARIED = 100
HALF_SCALE = ("TCGA-HE-7128", "TCGA-HE-7129", "TCGA-HE-7130")
"""Labelled 40×, nuclei of 12 px where the others' are 22: their true scale is not known, so nothing is learnt from
them."""

ORGANS = {
    "breast": ("A7-A13E", "A7-A13F", "AR-A1AK", "AR-A1AS", "E2-A1B5", "E2-A14V"),
    "kidney": ("B0-5698", "B0-5710", "B0-5711", "HE-7128", "HE-7129", "HE-7130"),
    "liver": ("18-5592", "21-5784", "21-5786", "38-6178", "49-4488", "50-5931"),
    "prostate": ("CH-5767", "G9-6336", "G9-6348", "G9-6356", "G9-6362", "G9-6363"),
    "bladder": ("DK-A2I6", "G2-A2EK"),
    "colon": ("AY-A8YK", "NH-A8F7"),
    "stomach": ("KB-A93J", "RD-A8N9"),
}
"""Of the training images, by patient (MoNuSeg's own list)."""


def all_observed(prepared: Path, cache: Path | None) -> list[Observed]:
    """Every training image; with a folder for them, what was observed before is not observed again."""
    result = []
    for name, pixels in images_of(prepared, "train"):
        kept = None if cache is None else cache / f"{name}.npz"
        if kept is not None and kept.is_file():
            with np.load(kept, allow_pickle=False) as arrays:
                result.append(Observed(name, **{field: arrays[field] for field in Observed._fields[1:]}))
            continue
        one = observed(name, pixels, count=VARIED)
        print(f"{name}: {len(one.scales)} regions", flush=True)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez(kept, **{field: value for field, value in one._asdict().items() if field != "name"})
        result.append(one)
    return result


def summary(samples: list[LeftOut]) -> dict[str, Any]:
    """Scores of whole images only rescaled, and of changed parts."""
    return {
        "whole images": error_scores([sample.error for sample in samples if sample.plain]),
        "changed parts": error_scores([sample.error for sample in samples if not sample.plain]),
    }


def patient(name: str) -> str:
    return name[:12]


def organ(name: str) -> str:
    found = [each for each, patients in ORGANS.items() if name[5:12] in patients]
    return found[0] if found else patient(name)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("-o", "--output", type=Path, required=True)
    made.add_argument("--cache", type=Path)
    made.add_argument("--without", default="", metavar="NAME,…")
    return made


def main() -> None:
    arguments = parser().parse_args()
    images = all_observed(arguments.prepared, arguments.cache)
    without = tuple(arguments.without.split(",")) if arguments.without else ()
    used = [image for image in images if not image.name.startswith((*HALF_SCALE, *without))]
    by_patient, by_organ = left_out(used, patient), left_out(used, organ)
    fitted_on = {
        "data": read_manifest(arguments.prepared).content_hash(),
        "images": [image.name for image in used],
        "left_out_of_the_fit": [*HALF_SCALE, *without],
        "command": BENCHMARK.program,
    }
    estimator = ScaleEstimator(fitted_templates(used), limits_of(by_organ), MPP, fitted_on)
    save_estimator(estimator, arguments.output)
    if without:
        return
    halves = {
        image.name: {
            f"{2**sample.truth:.2f}": round(2**sample.error, 2)
            for sample in read_samples(estimator.templates, image)
            if sample.plain
        }
        for image in images
        if image.name.startswith(HALF_SCALE)
    }
    figures = {
        "limits": estimator.limits._asdict(),
        "leaving_out_patients": summary(by_patient),
        "leaving_out_organs": summary(by_organ),
        "half_scale_images": halves,
    }
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
