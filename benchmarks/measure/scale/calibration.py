"""Whether intervals of the estimated scale cover what they promise, at several levels of promise.

    python -m benchmarks.measure.scale.calibration PREPARED [--cache FOLDER]

Whole images: those of the training split by templates and limits that never saw their organ, those of the test split by
the shipped templates, with limits from left-out organs (as shipped) and from left-out patients.  Nothing is chosen
here.
Writes results/benchmarks/scale_calibration.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.conflict import Fold, folds, samples_without
from benchmarks.measure.scale.fit import HALF_SCALE, all_observed, organ, patient
from benchmarks.measure.scale.samples import images_of, parser_of_prepared, scaled
from benchmarks.record import write_results
from seunet.evaluation import TEST_SCALES
from seunet.evaluation.fitting import LeftOut, left_out, limits_of, regions_of
from seunet.scale import Limits, Templates, distance, read_scale, shipped_estimator, signature, width

BENCHMARK = Benchmark(
    "measure.scale.calibration",
    ("results/benchmarks/scale_calibration.json",),
    10,
    arguments="prepared/monuseg --cache out/scale",
    needs=(MONUSEG,),
)

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def of_test_images(prepared: Path, templates: Templates) -> list[LeftOut]:
    """Every whole test image at the paper's scales."""
    result = []
    for name, pixels in images_of(prepared, "test"):
        for scale in TEST_SCALES:
            regions = [region for region in regions_of(scaled(pixels, scale)) if region.tissue > 0]
            readings = [read_scale(templates, signature(region.moments)) for region in regions]
            middle = float(np.median([reading.log2_scale for reading in readings]))
            result.append(LeftOut(middle, float(np.log2(scale)), width(readings), distance(readings), plain=True))
        print(name, flush=True)
    return result


def covered(samples: list[LeftOut], limits: Limits) -> list[bool]:
    """Whether the truth lies inside, sample by sample."""
    return [abs(sample.error) <= limits.half_interval(sample.distance, sample.width) for sample in samples]


def covered_left_out(every: list[Fold], level: float) -> list[bool]:
    """Of whole training images, by what never saw their organ."""
    result = []
    for fold in every:
        whole = [sample for sample in fold.samples if sample.plain]
        result += covered(whole, limits_of(samples_without(every, fold.held), level))
    return result


def share(inside: list[bool]) -> float:
    return round(float(np.mean(inside)), 4)


def parser() -> argparse.ArgumentParser:
    return parser_of_prepared(BENCHMARK, __doc__)


def main() -> None:
    arguments = parser().parse_args()
    used = [
        image for image in all_observed(arguments.prepared, arguments.cache) if not image.name.startswith(HALF_SCALE)
    ]
    by_organ = folds(used, organ)
    of_organs, of_patients = [sample for fold in by_organ for sample in fold.samples], left_out(used, patient)
    tested = of_test_images(arguments.prepared, shipped_estimator().templates)
    rows: list[dict[str, Any]] = [
        {
            "level": level,
            "test_limits_of_organs": share(covered(tested, limits_of(of_organs, level))),
            "test_limits_of_patients": share(covered(tested, limits_of(of_patients, level))),
            "training_organs_left_out": share(covered_left_out(by_organ, level)),
        }
        for level in LEVELS
    ]
    images = len(tested) // len(TEST_SCALES)
    print(write_results(BENCHMARK, {"test_images": images, "test_samples": len(tested), "rows": rows}))


if __name__ == "__main__":
    main()
