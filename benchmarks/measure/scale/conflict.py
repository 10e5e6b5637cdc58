"""Whether a wrong µm per pixel is noticed, and how often a right one is doubted; and what the interval covers.

    python -m benchmarks.measure.scale.conflict PREPARED [--cache FOLDER]

Training images only, each read by an estimator that was fitted, limits and all, without its patient (and, for the
coverage, without its organ).  Writes results/benchmarks/scale_conflict.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.fit import HALF_SCALE, MPP, all_observed, organ, patient
from benchmarks.measure.scale.samples import parser_of_prepared
from benchmarks.record import write_results
from seunet.evaluation.fitting import (
    COVERAGE,
    PLAIN_SCALES,
    LeftOut,
    Observed,
    covering_factors,
    fitted_templates,
    limits_of,
    read_samples,
)
from seunet.scale import Limits, Region, ScaleEstimate, ScaleEstimator, Templates, conflict

BENCHMARK = Benchmark(
    "measure.scale.conflict",
    ("results/benchmarks/scale_conflict.json",),
    10,
    arguments="prepared/monuseg --cache out/scale",
    needs=(MONUSEG,),
)

WRONG_BY = (0.25, 0.5, 2.0, 4.0)
"""Stated over true mpp: objectives that are mistaken for each other differ by factors of two."""

SCALE_KNOTS, SCALE_REACH = (-2.0, -1.0, 0.0, 1.0, 2.0), 0.6
"""log₂ of estimated scales; the interval that the present one is compared with."""

FloatArray = NDArray[np.float64]


class Fold(NamedTuple):
    """What was learnt without one patient or organ, and what it says of that one's samples."""

    held: str
    templates: Templates
    samples: list[LeftOut]


HalfIntervals = Callable[[list[LeftOut], list[LeftOut]], FloatArray]
"""What is learnt from, what is asked for → half of the intervals in octaves."""


def folds(images: list[Observed], group: Callable[[str], str]) -> list[Fold]:
    """One for each group."""
    result = []
    for held in sorted({group(image.name) for image in images}):
        templates = fitted_templates([image for image in images if group(image.name) != held])
        samples = [sample for image in images if group(image.name) == held for sample in read_samples(templates, image)]
        result.append(Fold(held, templates, samples))
    return result


def limits_without(every: list[Fold], held: str) -> Limits:
    """Learnt from the left-out samples of all others."""
    return limits_of(samples_without(every, held))


def samples_without(every: list[Fold], held: str) -> list[LeftOut]:
    return [sample for fold in every if fold.held != held for sample in fold.samples]


def half_intervals_by_distance(learnt: list[LeftOut], asked: list[LeftOut]) -> FloatArray:
    """As the estimator has them."""
    limits = limits_of(learnt)
    return np.array([limits.half_interval(sample.distance, sample.width) for sample in asked])


def half_intervals_by_scale(learnt: list[LeftOut], asked: list[LeftOut]) -> FloatArray:
    """With a factor that depends on the estimated scale instead."""
    factors = covering_factors(learnt, np.array([sample.log2_scale for sample in learnt]), SCALE_KNOTS, SCALE_REACH)
    return np.array([sample.width * np.interp(sample.log2_scale, SCALE_KNOTS, factors) for sample in asked])


def coverage(every: list[Fold], half_intervals: HalfIntervals) -> dict[str, dict[str, float]]:
    """Of samples whose limits never saw them either: of whole images, of changed parts; near the templates and far."""
    samples = [sample for fold in every for sample in fold.samples]
    halves = np.concatenate([half_intervals(samples_without(every, fold.held), fold.samples) for fold in every])
    errors = np.abs([sample.error for sample in samples])
    distances = np.array([sample.distance for sample in samples])
    plain = np.array([sample.plain for sample in samples])
    return {
        "whole images": _coverage(errors[plain], halves[plain], distances[plain]),
        "changed parts": _coverage(errors[~plain], halves[~plain], distances[~plain]),
    }


def missed(every: list[Fold]) -> dict[str, int]:
    """How many samples of whole images lie outside their interval, by what was left out."""
    outside = {}
    for fold in every:
        limits = limits_without(every, fold.held)
        outside[fold.held] = sum(
            sample.plain and abs(sample.error) > limits.half_interval(sample.distance, sample.width)
            for sample in fold.samples
        )
    return outside


def _coverage(errors: FloatArray, halves: FloatArray, distances: FloatArray) -> dict[str, float]:
    """With the interval score in octaves (Gneiting and Raftery 2007): length + 2 / 0.1 × what the truth is outside."""
    inside, far = errors <= halves, distances > np.quantile(distances, 0.6)
    score = 2 * halves + np.maximum(errors - halves, 0) * 2 / (1 - COVERAGE)
    return {
        "covered": round(float(inside.mean()), 4),
        "covered_near": round(float(inside[~far].mean()), 4),
        "covered_far": round(float(inside[far].mean()), 4),
        "interval_score": round(float(score.mean()), 3),
    }


def whole(image: Observed, scale: float) -> list[Region]:
    """The regions of the image, only rescaled."""
    rows = np.flatnonzero((image.plain == 1) & np.isclose(image.scales, scale))
    return [Region(image.moments[row], float(image.tissue[row]), image.covariances[row]) for row in rows]


def estimates(images: list[Observed], every: list[Fold]) -> dict[str, dict[float, ScaleEstimate]]:
    """Of each image at each scale, by what was learnt without its patient; the half-scale ones were never learnt."""
    used = [image for image in images if not image.name.startswith(HALF_SCALE)]
    all_of_them = ScaleEstimator(fitted_templates(used), limits_of([s for fold in every for s in fold.samples]), MPP)
    without = {fold.held: ScaleEstimator(fold.templates, limits_without(every, fold.held), MPP) for fold in every}
    return {
        image.name: {
            scale: without.get(patient(image.name), all_of_them).estimate(whole(image, scale)) for scale in PLAIN_SCALES
        }
        for image in images
    }


def alarms(found: dict[str, dict[float, ScaleEstimate]], wrong_by: float) -> dict[str, Any]:
    """How many images are flagged whose stated mpp is `wrong_by` times the true one, at all scales."""
    asked = [(name, scale, each) for name, by_scale in found.items() for scale, each in by_scale.items()]
    flagged = [
        f"{name[:12]} at {scale:.2f}"
        for name, scale, each in asked
        if conflict(wrong_by * MPP / scale, each) is not None
    ]
    return {"asked": len(asked), "flagged": len(flagged), "no_answer": sum(not each.known for _, _, each in asked)} | (
        {"which": flagged} if wrong_by == 1 else {}
    )


def nominal(found: dict[str, dict[float, ScaleEstimate]]) -> list[dict[str, Any]]:
    """Every image as it is, with the resolution it is published with."""
    rows = []
    for name, by_scale in found.items():
        each = by_scale[1.0]
        low, high = each.mpp_interval or (None, None)
        values = {"mpp": each.mpp, "low": low, "high": high}
        rounded = {key: None if value is None else round(value, 4) for key, value in values.items()}
        rows.append({"image": name[:12], **rounded, "flagged": conflict(MPP, each) is not None})
    return rows


INTERVALS: dict[str, HalfIntervals] = {
    "by distance": half_intervals_by_distance,
    "by scale": half_intervals_by_scale,
}


def parser() -> argparse.ArgumentParser:
    return parser_of_prepared(BENCHMARK, __doc__)


def main() -> None:
    arguments = parser().parse_args()
    images = all_observed(arguments.prepared, arguments.cache)
    used = [image for image in images if not image.name.startswith(HALF_SCALE)]
    by_patient, by_organ = folds(used, patient), folds(used, organ)
    found = estimates(images, by_patient)
    right = {name: each for name, each in found.items() if not name.startswith(HALF_SCALE)}
    figures = {
        "stated_mpp": MPP,
        "nominal": nominal(found),
        "right": alarms(right, 1.0),
        "wrong": {f"{factor:g}": alarms(right, factor) for factor in WRONG_BY},
        "coverage": {
            f"{left_out}, {name}": coverage(every, half_intervals)
            for left_out, every in (("organs", by_organ), ("patients", by_patient))
            for name, half_intervals in INTERVALS.items()
        },
        "whole_images_missed_by_organ": missed(by_organ),
    }
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
