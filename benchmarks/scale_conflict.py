"""Whether a wrong µm per pixel is noticed, and how often a right one is doubted; and what the interval covers.

    python -m benchmarks.scale_conflict PREPARED [--cache FOLDER]

Training images only, each read by an estimator that was fitted, limits and all, without its patient (and, for the
coverage, without its organ).  Writes benchmarks/results/scale_conflict.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fit_scale import (
    HALF_SCALE,
    MPP,
    PLAIN_SCALES,
    LeftOut,
    Observed,
    all_observed,
    fitted,
    limits_of,
    organ,
    patient,
    read_samples,
)
from benchmarks.record import write_results
from seunet.maths.scale_templates import Templates
from seunet.models.scale_estimator import INTERVAL_AT, Limits, ScaleEstimate, ScaleEstimator, conflict
from seunet.models.scale_regions import Region

WRONG_BY = (0.25, 0.5, 2.0, 4.0)
"""Stated over true mpp: objectives that are mistaken for each other differ by factors of two."""


class Fold(NamedTuple):
    """What was learnt without one patient or organ, and what it says of that one's samples."""

    held: str
    templates: Templates
    samples: list[LeftOut]


def folds(images: list[Observed], group: Callable[[str], str]) -> list[Fold]:
    """One for each group."""
    result = []
    for held in sorted({group(image.name) for image in images}):
        templates = fitted([image for image in images if group(image.name) != held])
        samples = [sample for image in images if group(image.name) == held for sample in read_samples(templates, image)]
        result.append(Fold(held, templates, samples))
    return result


def limits_without(every: list[Fold], held: str, whole_only: bool = False) -> Limits:
    """Learnt from the left-out samples of all others."""
    others = [sample for fold in every if fold.held != held for sample in fold.samples]
    return limits_of([sample for sample in others if sample.plain or not whole_only])


def coverage(every: list[Fold], whole_only: bool = False) -> dict[str, float]:
    """Share of samples inside the interval, whose limits never saw them either."""
    inside: dict[bool, list[bool]] = {True: [], False: []}
    for fold in every:
        limits = limits_without(every, fold.held, whole_only)
        for sample in fold.samples:
            half = float(np.interp(sample.log2_scale, INTERVAL_AT, limits.interval)) * sample.width
            inside[sample.plain].append(abs(sample.error) <= half)
    return {
        "whole images": round(float(np.mean(inside[True])), 4),
        "changed parts": round(float(np.mean(inside[False])), 4),
    }


def whole(image: Observed, scale: float) -> list[Region]:
    """The regions of the image, only rescaled."""
    rows = np.flatnonzero((image.plain == 1) & np.isclose(image.scales, scale))
    return [Region(image.moments[row], float(image.tissue[row]), image.covariances[row]) for row in rows]


def estimates(images: list[Observed], every: list[Fold]) -> dict[str, dict[float, ScaleEstimate]]:
    """Of each image at each scale, by what was learnt without its patient; the half-scale ones were never learnt."""
    used = [image for image in images if not image.name.startswith(HALF_SCALE)]
    all_of_them = ScaleEstimator(fitted(used), limits_of([s for fold in every for s in fold.samples]), MPP)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
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
            "organs, all samples": coverage(by_organ),
            "organs, whole images": coverage(by_organ, whole_only=True),
            "patients, all samples": coverage(by_patient),
            "patients, whole images": coverage(by_patient, whole_only=True),
        },
    }
    print(write_results("scale_conflict", figures))


if __name__ == "__main__":
    main()
