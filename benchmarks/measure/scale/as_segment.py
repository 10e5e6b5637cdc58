"""The scale of whole images as `seunet segment` estimates it when it is told nothing.

    python -m benchmarks.measure.scale.as_segment nuclei nuclei-2 --sets prepared/cpm17 prepared/tnbc prepared/consep

Every image of each set, by each model's own estimator.  An image that states no resolution is taken to have 0.25 µm
per pixel: those of CPM17.  `nuclei` and its estimator know none of these sets; `nuclei-2` learnt from training images
of TNBC and CoNSeP (what is left when they are left out: measure.scale.heads).  Writes
results/benchmarks/scale_as_segment.json.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

import seunet
from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from seunet.cli import progress_of
from seunet.data import read_manifest
from seunet.evaluation.fitting import error_scores
from seunet.images import ArrayImage
from seunet.images import pillow_codec as raster
from seunet.models import ScaleUNet, weights_sha256
from seunet.scale import ScaleEstimate
from seunet.segmentation import known_scale

BENCHMARK = Benchmark(
    "measure.scale.as_segment",
    ("results/benchmarks/scale_as_segment.json",),
    6,
    arguments="nuclei nuclei-2 --sets prepared/cpm17 prepared/tnbc prepared/consep",
    needs=(MONUSEG, "prepared/cpm17, prepared/tnbc, prepared/consep"),
)

USUAL_MPP = 0.25


def estimates(model: ScaleUNet, root: Path, title: str) -> list[tuple[str, float, ScaleEstimate]]:
    """Name, true µm per pixel and estimate of every image of a set."""
    found = []
    entries = read_manifest(root).images
    with progress_of(True, timed=True, name=title) as progress:
        for number, entry in enumerate(entries):
            progress(number, len(entries), "images")
            pixels = raster.decode_rgb(raster.read_image(root / entry.image.path), entry.name).pixels
            estimate = known_scale(ArrayImage(pixels), model).estimate
            if estimate is None:
                raise SystemExit(f"{model.name} has no scale estimator; make one with `seunet fit-scale`")
            found.append((entry.name, entry.mpp or USUAL_MPP, estimate))
    return found


def summary(found: list[tuple[str, float, ScaleEstimate]]) -> dict[str, Any]:
    """Errors, refusals and intervals of a set."""
    told = [(mpp, one.mpp, one.mpp_interval) for _, mpp, one in found if one.mpp and one.mpp_interval]
    return {
        **error_scores([math.log2(mpp / estimate) for mpp, estimate, _ in told]),
        "asked": len(found),
        "refused": {name: one.reason for name, _, one in found if not one.known},
        "covered": round(float(np.mean([low <= mpp <= high for mpp, _, (low, high) in told])), 4),
        "median_half_interval": round(float(np.median([math.sqrt(high / low) for _, _, (low, high) in told])), 3),
    }


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("models", nargs="+")
    made.add_argument("--sets", nargs="+", type=Path, required=True)
    return made


def main() -> None:
    asked = parser().parse_args()
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"models": {}}
    for name in asked.models:
        model = seunet.load(name)
        sets = {root.name: summary(estimates(model, root, f"{name}, {root.name}")) for root in asked.sets}
        figures["models"][name] = {"weights": weights_sha256(model), "sets": sets}
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
