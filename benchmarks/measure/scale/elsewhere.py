"""The scale estimate on another set, from other laboratories: nothing of it was used to fit or to choose.

    python -m benchmarks.measure.scale.elsewhere PREPARED

Every patch of BCSS at eight scales.  The slides are 40×, the training resolution, but for one.  Writes
results/benchmarks/scale_elsewhere.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from benchmarks.declare import PATCHES, Benchmark
from benchmarks.measure.scale.estimate import estimates_at, summary
from benchmarks.measure.scale.samples import images_of
from benchmarks.record import write_results
from seunet.data import SPLITS, read_manifest

BENCHMARK = Benchmark(
    "measure.scale.elsewhere",
    ("results/benchmarks/scale_elsewhere.json",),
    2,
    arguments="prepared/patches",
    needs=(PATCHES,),
)

SCALES = tuple(0.5 * 2 ** (step / 2) for step in range(-1, 7))
SCANNED_AT_20X = "A12F_AO"
"""The set's slide_magnifications.csv; the patches are in the slide's own pixels."""


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    return made


def main() -> None:
    prepared: Path = parser().parse_args().prepared
    cv2.setNumThreads(1)
    images = [image for split in SPLITS for image in images_of(prepared, split)]
    rows = estimates_at(images, SCALES)
    for row in rows:
        row["scale"] *= 0.5 if SCANNED_AT_20X in row["image"] else 1.0
    ratios = {
        name: round(
            float(np.median([r["relative_scale"] / r["scale"] for r in rows if r["image"] == name and r["known"]])), 2
        )
        for name, _ in images
    }
    figures = {
        "set": read_manifest(prepared).dataset,
        "images": len(images),
        "all": summary(rows),
        "median_ratio_by_image": ratios,
        "rows": rows,
    }
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
