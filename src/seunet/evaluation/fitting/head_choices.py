r"""How far each head of a model is to be believed, and what is done with a known scale, by sampled pixels.

- matched head: the best where images are resampled to the training scale;
- range of scaled filters: around s = 1, where that head is at most half a point below resampling;
- fusion where the scale is not known: the best of the paper's three;
- temperatures: what minimises the cross-entropy of each head by itself;
- prior and sharpness (`maths.fusion.calibrated`): those of a few candidates with the surest gain in IoU over P_Ens.
  What that is worth is measured by leaving one image out after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.evaluation.fitting.head_samples import BLIND, RESAMPLED, SCALED, STATED, Sampled
from seunet.maths.confusion import confusion_matrix, headline_iou
from seunet.maths.fusion import CALIBRATED, FUSIONS, Calibration, Fusion, first_largest, fuse
from seunet.models.card import HeadCalibration

STEPS: Final = 30
WIDTHS: Final = (0.3, 1.0, 2.0)
"""Of a prior, in heads: one head alone, with its neighbours, with most."""
SHARPNESS: Final = (0.0, 1.0, 4.0, 16.0)
TOLERANCE: Final = 0.005
"""Half a point of IoU: a few images show no less, and leaving the pixels alone costs nothing."""
LEAST_IMAGES: Final = 3

Counts = dict[tuple[str, float], Tensor]
"""A confusion matrix for each image and scale."""


class HeadChoices(NamedTuple):
    """What goes into the card, and the IoUs it rests on: {way: {head, fusion or "calibrated": IoU}}."""

    matched_head: int
    scaled_filters_range: tuple[float, float]
    blind_fusion: str
    calibration: HeadCalibration
    candidates: dict[str, dict[str, float]]
    ious: dict[str, dict[str, float]]

    def card_fields(self) -> dict[str, Any]:
        """As `ModelCard` calls them."""
        names = ("matched_head", "scaled_filters_range", "blind_fusion", "calibration")
        return {name: getattr(self, name) for name in names}


class Candidate(NamedTuple):
    """Heads are worth −½((k − centre)/width)² before they have said anything, and β for what they say."""

    centre: float
    width: float
    sharpness: float

    def calibration(self, temperatures: tuple[float, ...]) -> Calibration:
        prior = [-0.5 * ((head - self.centre) / self.width) ** 2 for head in range(len(temperatures))]
        return Calibration(temperatures, tuple(round(value - max(prior), 4) for value in prior), self.sharpness)


def chosen_heads(samples: Sequence[Sampled]) -> HeadChoices:
    """Every choice, on all images."""
    images = {sample.image for sample in samples}
    heads = len(samples[0].probabilities) if samples else 0
    if len(images) < LEAST_IMAGES:
        held_out = "1 held-out image" if len(images) == 1 else f"{len(images)} held-out images"
        raise InputError(f"{held_out}; heads are chosen by {LEAST_IMAGES} or more")
    if heads < 2:
        raise InputError("the model has one head: there is nothing to choose among")
    by_way = {way: [one for one in samples if one.way == way] for way in (BLIND, RESAMPLED, SCALED)}
    matched = max(range(heads), key=lambda head: mean_iou(counts(by_way[RESAMPLED], head)))
    span = _filter_range(by_way[SCALED], by_way[RESAMPLED], matched)
    by_way[STATED] = [one for one in by_way[SCALED] if span[0] <= one.scale <= span[1]]
    by_way[STATED] += [one for one in by_way[RESAMPLED] if not span[0] <= one.scale <= span[1]]
    temperatures = temperatures_of(samples)
    best, ious = {}, {}
    for way in (BLIND, STATED):
        best[way], others = chosen_candidate(by_way[way], temperatures)
        rows: dict[str, Fusion | int] = {f"head {number + 1}": number for number in range(heads)}
        rows |= {name: name for name in FUSIONS}
        found = {name: mean_iou(counts(by_way[way], how)) for name, how in rows.items()} | {
            CALIBRATED: mean_iou(others)
        }
        ious[way] = {name: round(value, 4) for name, value in found.items()}
    blind_one, stated_one = (best[way].calibration(temperatures) for way in (BLIND, STATED))
    calibration = HeadCalibration(
        temperatures=temperatures,
        prior=blind_one.prior,
        sharpness=blind_one.sharpness,
        prior_at_scale=stated_one.prior,
        sharpness_at_scale=stated_one.sharpness,
    )
    fusion = max(FUSIONS, key=lambda name: ious[BLIND][name])
    tried = {way: each._asdict() for way, each in best.items()}
    return HeadChoices(matched + 1, span, fusion, calibration, tried, ious)


def _filter_range(scaled: Sequence[Sampled], resampled: Sequence[Sampled], head: int) -> tuple[float, float]:
    if not scaled:
        return 1.0, 1.0
    scales = sorted({one.scale for one in scaled})
    good = []
    for scale in scales:
        now, then = (counts([one for one in ways if one.scale == scale], head) for ways in (scaled, resampled))
        good.append(mean_iou(now) >= mean_iou(then) - TOLERANCE)
    return range_around_one(scales, good)


def range_around_one(scales: Sequence[float], good: Sequence[bool]) -> tuple[float, float]:
    """The range of rising scales around 1 that are all good.

    A scale between two measured ones counts as the nearer: the range ends half way to the first that is not good.
    """
    first = last = scales.index(1.0)
    while first > 0 and good[first - 1]:
        first -= 1
    while last < len(scales) - 1 and good[last + 1]:
        last += 1
    below, above = scales[max(first - 1, 0)], scales[min(last + 1, len(scales) - 1)]
    return round(math.sqrt(scales[first] * below), 3), round(math.sqrt(scales[last] * above), 3)


def temperatures_of(samples: Sequence[Sampled]) -> tuple[float, ...]:
    """T of each head by itself: what minimises its cross-entropy."""
    probabilities = torch.cat([sample.probabilities for sample in samples], dim=2).double().clamp_min(1e-9).log()
    classes = torch.cat([sample.classes for sample in samples])
    counted = classes < probabilities.shape[1]
    logits, target = probabilities[..., counted], classes[counted].expand(len(probabilities), 1, -1)
    raw = torch.zeros(len(probabilities), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([raw], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = -(logits / raw.exp()[:, None, None]).log_softmax(1).gather(1, target).mean()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return tuple(round(value, 4) for value in raw.detach().exp().tolist())


def candidates(heads: int) -> list[Candidate]:
    """No head before others, and each head with its neighbours."""
    equal = [Candidate(0.0, 1e6, sharpness) for sharpness in SHARPNESS]
    return equal + [
        Candidate(float(centre), width, sharpness)
        for centre in range(heads)
        for width in WIDTHS
        for sharpness in SHARPNESS
    ]


def counts(samples: Sequence[Sampled], how: Fusion | int) -> Counts:
    """Of a fusion, or of a head by its number."""
    result = {}
    for sample in samples:
        given = sample.probabilities[None, :, :, :, None]
        fused = given[:, how] if isinstance(how, int) else fuse(given, how)
        classes = sample.probabilities.shape[1]
        found = confusion_matrix(first_largest(fused, dim=1)[0, :, 0], sample.classes, classes)
        result[sample.image, sample.scale] = found
    return result


def mean_iou(found: Counts) -> float:
    """The mean over the scales of the IoU over all images; scales without the class have none."""
    by_scale = [
        headline_iou(torch.stack([matrix for (_, own), matrix in found.items() if own == scale]).sum(0))
        for scale in sorted({scale for _, scale in found})
    ]
    known = [iou for iou in by_scale if not math.isnan(iou)]
    return fmean(known) if known else 0.0


def sure_gain(found: Counts, usual: Counts, images: Sequence[str]) -> float:
    """The mean gain in IoU over the images less its standard error: what few images do not show is no gain."""
    gains = []
    for image in images:
        own, before = ({key: matrix for key, matrix in each.items() if key[0] == image} for each in (found, usual))
        gains.append(mean_iou(own) - mean_iou(before))
    return fmean(gains) - stdev(gains) / math.sqrt(len(gains))


def chosen_candidate(samples: Sequence[Sampled], temperatures: tuple[float, ...]) -> tuple[Candidate, Counts]:
    """The candidate that is best on all images, and what each image gives where it is chosen on the others."""
    every = {each: counts(samples, each.calibration(temperatures)) for each in candidates(len(temperatures))}
    usual = counts(samples, "p_ens")
    images = sorted({sample.image for sample in samples})
    left_out: Counts = {}
    for image in images:
        others = [other for other in images if other != image]
        best = max(every, key=partial(_gain_of, every, usual, others))
        left_out |= {key: matrix for key, matrix in every[best].items() if key[0] == image}
    return max(every, key=partial(_gain_of, every, usual, images)), left_out


def _gain_of(every: dict[Candidate, Counts], usual: Counts, images: Sequence[str], each: Candidate) -> float:
    return sure_gain(every[each], usual, images)
