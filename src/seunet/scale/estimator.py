"""How large structures are, from the pixels alone: s times as large as in the training images, or "don't know"."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.limits import MPP_RANGE
from seunet.scale.regions import MIN_SIDE_PX, Region, checked_rgb, observe, spread_boxes
from seunet.scale.signatures import is_flat, signature
from seunet.scale.templates import Reading, Templates, read_both, read_scale

FloatArray = NDArray[np.float64]

KNOWN_RANGE: Final = (0.19, 5.6)
"""Relative scales that can be estimated; templates end at 0.15 and 6.7."""

GREY_DEGREES: Final = 5.0
"""Between the main direction of optical density and grey, at least: light and shade are grey, stains are not."""

STAIN_RATIO: Final = (0.045, 0.36)
"""Second over first deviation of optical density: one ink has less, the colours of the world have more."""

DOUBTFUL: Final = (1.0, (0.045, 0.55))
"""The same two limits where a network has looked and its heads are at home: `AT_HOME`, their distance, at most."""
AT_HOME: Final = 15.0

CONFLICT_FACTOR: Final = 1.5
"""Between a stated and an estimated mpp, beyond which they contradict each other."""

GREY: Final = np.full(3, 1 / math.sqrt(3))


class ScaleEstimate(NamedTuple):
    """What is known of the scale of an image; without an answer only `known` (False) and `reason` are set."""

    relative_scale: float | None
    """Structures are this many times as large as in the training images."""
    low: float | None
    high: float | None
    """The 90 % interval of `relative_scale`."""
    mpp: float | None
    """µm per pixel: that of the training images divided by `relative_scale`."""
    known: bool
    reason: str
    """What the answer rests on, or why there is none."""

    @property
    def mpp_interval(self) -> tuple[float, float] | None:
        """The 90 % interval of `mpp`."""
        if self.mpp is None or self.low is None or self.high is None or self.relative_scale is None:
            return None
        return self.mpp * self.relative_scale / self.high, self.mpp * self.relative_scale / self.low


class Limits(NamedTuple):
    """Learnt from images that were left out of the fit."""

    distance: float
    """From the templates, beyond which an image is not taken for tissue."""
    interval: tuple[float, ...]
    """By what `width` of a reading is multiplied for half the 90 % interval in octaves, at `INTERVAL_AT`."""

    def half_interval(self, distance: float, width: float) -> float:
        """Half the 90 % interval in octaves: the less an image is like the templates, the wider."""
        octaves = math.log2(max(distance, INTERVAL_AT[0]))
        return width * float(np.interp(octaves, np.log2(INTERVAL_AT), self.interval))


INTERVAL_AT: Final = (10.0, 20.0, 40.0, 80.0)
"""Distances from the templates at which `Limits.interval` is given."""

LEAST_WIDTH: Final = 0.2
"""Octaves; what nuclei of different patients differ by, however sure the templates are."""


class HeadTemplates(NamedTuple):
    """What the heads of one network say at each scale (`heads.py`), and the limits of answers with their say."""

    templates: Templates
    limits: Limits


@dataclass(frozen=True)
class ScaleEstimator:
    """Templates, the limits that belong to them, and the resolution of the images they are of."""

    templates: Templates
    limits: Limits
    mpp: float
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    """From which images, for people."""
    heads: HeadTemplates | None = None
    """The second opinion, where the estimator is of a network that has one; used for regions it has looked at."""

    def estimate(self, regions: Iterable[Region], mpp: float | None = None) -> ScaleEstimate:
        """The median of the regions that have an estimate, if they are at least half of those with tissue."""
        seen = [region for region in regions if region.tissue > 0]
        verdicts = [self.judge(region) for region in seen]
        told = [verdict for verdict in verdicts if isinstance(verdict, Reading)]
        if not verdicts:
            return unknown("no tissue")
        if 2 * len(told) < len(verdicts):
            why = Counter(verdict for verdict in verdicts if isinstance(verdict, str))
            return unknown(why.most_common(1)[0][0])
        middle = float(np.median([reading.log2_scale for reading in told]))
        half = self.limits_for(seen[0]).half_interval(distance(told), width(told))
        scale, factor = 2**middle, 2**half
        reason = f"{len(told)} of {len(verdicts)} regions with tissue"
        known_mpp = (self.mpp if mpp is None else mpp) / scale
        return ScaleEstimate(scale, scale / factor, scale * factor, known_mpp, True, reason)

    def sha256(self) -> str:
        """Which estimator this is."""
        heads = () if self.heads is None else (self.heads.limits,)
        state = hashlib.sha256(json.dumps([self.limits, self.mpp, *heads]).encode())
        for values in (*self.templates, *(() if self.heads is None else self.heads.templates)):
            state.update(np.ascontiguousarray(values, np.float32).tobytes())
        return state.hexdigest()

    def of_texture(self) -> ScaleEstimator:
        """Without what the heads say: for other weights than those it was fitted to."""
        return replace(self, heads=None)

    def limits_for(self, region: Region) -> Limits:
        """Those of both opinions where the network has looked, else those of the texture."""
        return self.limits if self.heads is None or region.heads is None else self.heads.limits

    def read(self, region: Region) -> Reading:
        """What the templates say of a region, with the heads where the network has looked."""
        if self.heads is None or region.heads is None:
            return read_scale(self.templates, signature(region.moments))
        return read_both(self.templates, signature(region.moments), self.heads.templates, region.heads)

    def judge(self, region: Region) -> Reading | str:
        """The scale of one region with tissue, or why there is none."""
        if is_flat(region.moments):
            return "no structure: blank or far out of focus"
        reading, limit = self.read(region), self.limits_for(region).distance
        looked = self.heads is not None and region.heads is not None
        if (colour := colour_fault(region.covariance, reading.distance if looked else None)) is not None:
            return colour
        if reading.distance > limit:
            return f"unlike stained tissue at any scale: distance {reading.distance:.0f} > {limit:.0f}"
        if not KNOWN_RANGE[0] <= 2**reading.log2_scale <= KNOWN_RANGE[1]:
            return f"beyond the scales that can be estimated, {KNOWN_RANGE[0]:g} to {KNOWN_RANGE[1]:g}"
        return reading


def width(readings: Sequence[Reading]) -> float:
    """How unsure the templates are of an image, in octaves: what the interval is proportional to."""
    return LEAST_WIDTH + float(np.median([reading.deviation for reading in readings]))


def distance(readings: Sequence[Reading]) -> float:
    """How unlike the templates an image is."""
    return float(np.median([reading.distance for reading in readings]))


def conflict(stated_mpp: float, found: ScaleEstimate) -> str | None:
    """What is wrong between the mpp that somebody states and the pixels, if something is.

    Said only where the stated value lies outside the interval and far from the estimate: one image in ten lies
    outside its 90 % interval, and a difference of less than half is no harm to a network that bears a few scales.
    """
    if found.mpp_interval is None or found.mpp is None:
        return None
    low, high = found.mpp_interval
    ratio = stated_mpp / found.mpp
    if low <= stated_mpp <= high or 1 / CONFLICT_FACTOR <= ratio <= CONFLICT_FACTOR:
        return None
    times = f"{1 / ratio:.2g} times as much" if ratio < 1 else f"1/{ratio:.2g} of it"
    seen = f"{found.mpp:.2g} ({low:.2g}–{high:.2g})"
    return f"stated are {stated_mpp:.4g} µm per pixel, the pixels look like {seen}, {times}"


def unknown(reason: str) -> ScaleEstimate:
    """No answer, and why."""
    return ScaleEstimate(None, None, None, None, False, reason)


def too_small(height_px: int, width_px: int) -> ScaleEstimate | None:
    """No answer for an image that shows too little; None if it is large enough."""
    if min(height_px, width_px) >= MIN_SIDE_PX:
        return None
    return unknown(f"too small: {width_px}×{height_px} px; {MIN_SIDE_PX} per side are needed")


def colour_fault(covariance: FloatArray, heads_distance: float | None = None) -> str | None:
    """Why these colours are not those of stains, if they are not.

    Stains subtract light by fixed vectors of absorbance, mostly two of them.  Light and shade change all colours
    alike, so photographs and scans of print vary along grey.  Less is asked of colours where the heads of a network
    find what they know.
    """
    at_home = heads_distance is not None and heads_distance <= AT_HOME
    grey_degrees, ratios = DOUBTFUL if at_home else (GREY_DEGREES, STAIN_RATIO)
    values, vectors = np.linalg.eigh(covariance)
    if values[2] <= 0:
        return "no structure: what is not glass is all of one colour"
    angle = math.degrees(math.acos(min(abs(float(vectors[:, 2] @ GREY)), 1.0)))
    if angle < grey_degrees:
        return f"not coloured by stains: {angle:.1f}° from grey"
    ratio = math.sqrt(max(float(values[1]), 0.0) / float(values[2]))
    if not ratios[0] <= ratio <= ratios[1]:
        return f"not coloured by two stains: ratio of deviations {ratio:.2f}"
    return None


def estimate_scale(
    image: object, mpp_of_training: float | None = None, estimator: ScaleEstimator | None = None
) -> ScaleEstimate:
    """How large structures are in an 8-bit RGB image [height, width, 3], from its pixels alone.

    A large image is sampled: up to 3 × 3 regions of 1024², the median of which is taken.

    Args:
        image: uint8 [height, width, 3].
        mpp_of_training: µm per pixel where `relative_scale` is 1; that of the estimator if not given.
        estimator: the one that ships with the package if not given.
    """
    pixels = checked_rgb(image)
    if mpp_of_training is not None and not MPP_RANGE[0] <= mpp_of_training <= MPP_RANGE[1]:
        raise InputError(f"`mpp_of_training` (={mpp_of_training:g}) must be within {MPP_RANGE[0]:g}–{MPP_RANGE[1]:g}")
    boxes = spread_boxes(*pixels.shape[:2])
    regions = (observe(pixels[box.y : box.y + box.height_px, box.x : box.x + box.width_px]) for box in boxes)
    chosen = estimator or shipped_estimator()
    return too_small(*pixels.shape[:2]) or chosen.estimate(regions, mpp_of_training)


@cache
def shipped_estimator() -> ScaleEstimator:
    """The estimator of the model `nuclei`."""
    from seunet.pretrained import BUILT_IN
    from seunet.scale.files import load_estimator

    return load_estimator(BUILT_IN / "nuclei")
