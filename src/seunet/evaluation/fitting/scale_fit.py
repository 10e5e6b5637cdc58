"""Fit a scale estimator: templates of all images, limits and intervals of images that were left out of the templates.

An image of a user is of other tissue, from another laboratory: what is left out at a time is a whole group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.evaluation.fitting.scale_samples import Observed
from seunet.scale.estimator import INTERVAL_AT, HeadTemplates, Limits, ScaleEstimator, distance, width
from seunet.scale.signatures import signature
from seunet.scale.templates import Reading, Templates, fit_templates, read_both, read_scale

FloatArray = NDArray[np.float64]
Group = Callable[[str], str]
"""The group of an image by its name."""

COVERAGE: Final = 0.9
REFUSED: Final = 0.025
"""Of left-out samples; the limit of the distance is set there."""
REFUSED_WITH_HEADS: Final = 0.005
"""The same where heads have their say: what is far from them has a wide interval sooner than none."""
INTERVAL_REACH: Final = 0.35
"""Octaves of the distance around each of `INTERVAL_AT` that its factor is learnt from."""
ASKED_SCALES: Final = (0.249, 4.01)
LEAST_GROUPS: Final = 3


class LeftOut(NamedTuple):
    """A sample as the estimator sees it that never saw its image."""

    log2_scale: float
    truth: float
    width: float
    distance: float
    plain: bool

    @property
    def error(self) -> float:
        return self.log2_scale - self.truth


def fit_estimator(
    images: Sequence[Observed],
    group: Group,
    mpp: float,
    fitted_on: Mapping[str, Any],
    texture: ScaleEstimator | None = None,
) -> tuple[ScaleEstimator, list[LeftOut]]:
    """The estimator of all images, and their samples as read without their own group, which its limits come from.

    Where a network has looked at them, what its heads say is fitted too, and kept if it makes the left-out errors
    smaller.  `texture`: an estimator whose templates and limits stay as they are; only the heads are fitted.
    """
    check_groups({group(image.name) for image in images})
    kept = None if texture is None else texture.templates
    samples = left_out(images, group, kept)
    if texture is None:
        texture = ScaleEstimator(fitted_templates(images), limits_of(samples), mpp)
    estimator = replace(texture, fitted_on=fitted_on, heads=None)
    looked = [part for part in map(looked_at, images) if len(part.scales)]
    if len({group(image.name) for image in looked}) < LEAST_GROUPS:
        return estimator, samples
    alone, both = left_out(looked, group, kept), left_out(looked, group, kept, with_heads=True)
    if mean_error(both) >= mean_error(alone):
        return estimator, samples
    heads = HeadTemplates(head_templates(looked), limits_of(both, refused=REFUSED_WITH_HEADS))
    return replace(estimator, heads=heads), both


def check_groups(groups: set[str]) -> None:
    """Refuse so few groups that leaving one out shows nothing."""
    if len(groups) < LEAST_GROUPS:
        has = "1 patient" if len(groups) == 1 else f"{len(groups)} patients"
        raise InputError(
            f"images of {has}; a scale estimator needs those of {LEAST_GROUPS} or more, to see how it does on images "
            "it never saw"
        )


def fitted_templates(images: Sequence[Observed]) -> Templates:
    """Templates of the texture of these images."""
    seen = [image.tissue > 0 for image in images]
    if not any(rows.any() for rows in seen):
        raise InputError("none of the images shows tissue; a scale estimator is fitted on stained tissue")
    moments = np.concatenate([image.moments[rows] for image, rows in zip(images, seen, strict=True)])
    scales = np.concatenate([image.scales[rows] for image, rows in zip(images, seen, strict=True)])
    weights = np.concatenate([image.weights[rows] for image, rows in zip(images, seen, strict=True)])
    return fit_templates(np.stack([signature(each) for each in moments]), np.log2(scales), weights)


def head_templates(looked: Sequence[Observed]) -> Templates:
    """Templates of what the heads say of images that the network has looked at (`looked_at`)."""
    profiles, scales, weights = (
        np.concatenate(rows) for rows in zip(*((one.heads, one.scales, one.weights) for one in looked), strict=True)
    )
    return fit_templates(profiles, np.log2(scales), weights)


def looked_at(image: Observed) -> Observed:
    """What of an image the network has looked at."""
    rows = np.isfinite(image.heads).all(axis=1) & (image.heads.shape[1] > 0)
    return Observed(image.name, *(values[rows] for values in image[1:]))


def read_samples(templates: Templates, image: Observed, heads: Templates | None = None) -> list[LeftOut]:
    """Every sample of the image at scales that are asked for, by templates that never saw it."""
    result = []
    for number in np.unique(image.sample):
        rows = np.flatnonzero((image.sample == number) & (image.tissue > 0))
        if not len(rows) or not ASKED_SCALES[0] < image.scales[rows[0]] < ASKED_SCALES[1]:
            continue
        readings = [read_sample(templates, image, row, heads) for row in rows.tolist()]
        middle = float(np.median([reading.log2_scale for reading in readings]))
        truth, plain = float(np.log2(image.scales[rows[0]])), bool(image.plain[rows[0]])
        result.append(LeftOut(middle, truth, width(readings), distance(readings), plain))
    return result


def read_sample(templates: Templates, image: Observed, row: int, heads: Templates | None = None) -> Reading:
    """One region of an image by its texture, and by what the heads say of it where their templates are given."""
    texture = signature(image.moments[row])
    return read_scale(templates, texture) if heads is None else read_both(templates, texture, heads, image.heads[row])


def left_out(
    images: Sequence[Observed], group: Group, texture: Templates | None = None, with_heads: bool = False
) -> list[LeftOut]:
    """Each group's samples, read by templates of the other groups, or by those of `texture` that are given."""
    result = []
    for held in sorted({group(image.name) for image in images}):
        others = [image for image in images if group(image.name) != held]
        templates = fitted_templates(others) if texture is None else texture
        heads = head_templates(others) if with_heads else None
        for image in images:
            if group(image.name) == held:
                result += read_samples(templates, image, heads)
    return result


def mean_error(samples: Sequence[LeftOut]) -> float:
    """In octaves, whatever its sign."""
    return float(np.mean([abs(sample.error) for sample in samples]))


def limits_of(samples: Sequence[LeftOut], coverage: float = COVERAGE, refused: float = REFUSED) -> Limits:
    """What all but `refused` of the samples are nearer than, and what multiple of their width covers the errors."""
    far = float(np.quantile([sample.distance for sample in samples], 1 - refused))
    place = np.log2([sample.distance for sample in samples])
    factors = covering_factors(samples, place, tuple(np.log2(INTERVAL_AT)), INTERVAL_REACH, coverage)
    return Limits(round(far, 1), factors)


def covering_factors(
    samples: Sequence[LeftOut], place: FloatArray, knots: tuple[float, ...], reach: float, coverage: float = COVERAGE
) -> tuple[float, ...]:
    """What multiple of its width covers that share of the errors of samples whose `place` is near each knot.

    Where no sample is near a knot, the nearest ones stand in for it.
    """
    score = np.array([abs(sample.error) / sample.width for sample in samples])
    order = np.argsort(score)
    factors = []
    for knot in knots:
        octaves = ((place[order] - knot) / reach) ** 2
        near = np.exp(-0.5 * (octaves - octaves.min()))
        covered = np.cumsum(near) / near.sum()
        factors.append(round(float(score[order][np.searchsorted(covered, coverage)]), 3))
    return tuple(factors)


def error_scores(errors: Sequence[float]) -> dict[str, float]:
    """Of errors in octaves: the median factor, and the shares within 25 % and within 2 ×."""
    size = np.abs(np.asarray(errors, dtype=np.float64))
    return {
        "count": len(size),
        "median_factor": round(float(2 ** np.median(size)), 3),
        "within_25_percent": round(float((size <= np.log2(1.25)).mean()), 4),
        "within_2_times": round(float((size <= 1).mean()), 4),
        "bias_factor": round(float(2 ** np.mean(errors)), 3),
    }
