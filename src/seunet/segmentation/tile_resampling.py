"""Resampling on a grid that is fixed for the whole image: a part has the pixels that the whole would have there."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.segmentation.spans import Span


class Taps(NamedTuple):
    """Which source pixels make up each new one, and how much of each: [new pixels, taps]."""

    places: NDArray[np.int64]
    weights: NDArray[np.float32]


def resampled_length(length: int, ratio: float) -> int:
    """How many pixels `length` become: round(length · ratio), at least one."""
    return max(1, round(length * ratio))


def resampling_taps(span: Span, length: int, ratio: float, antialias: bool = True) -> Taps:
    """New pixel i has its centre at (i + ½)/ratio of a source of this length.

    It is a mean with weights that fall linearly to 0 at one source pixel from the centre, or at 1/ratio where there
    are fewer new pixels than old ones: bilinear interpolation, with all source pixels counted when shrinking (but
    without `antialias`, as the paper's evaluation has it).
    """
    support = max(1.0, 1 / ratio) if antialias else 1.0
    centres = (np.arange(span.start, span.stop) + 0.5) / ratio - 0.5
    first = np.ceil(centres - support).astype(np.int64)
    places = first[:, None] + np.arange(math.floor(2 * support) + 1)
    weights = np.maximum(0.0, 1 - np.abs(places - centres[:, None]) / support)
    # Beyond the edge there is nothing; a new pixel that lies wholly beyond it is that of the edge.
    weights[(places < 0) | (places >= length)] = 0.0
    places = places.clip(0, length - 1)
    lost = weights.sum(1) == 0
    weights[lost, 0] = 1.0
    return Taps(places, (weights / weights.sum(1, keepdims=True)).astype(np.float32))


def seen_by_resampling(span: Span, length: int, ratio: float) -> Span:
    """The source pixels that `span` of the new ones is made of."""
    ends = resampling_taps(Span(span.start, span.start + 1), length, ratio).places
    others = resampling_taps(Span(span.stop - 1, span.stop), length, ratio).places
    return Span(int(ends.min()), int(others.max()) + 1)


def resample(pixels: NDArray[np.uint8], held: tuple[Span, Span], rows: Taps, columns: Taps) -> NDArray[np.uint8]:
    """New pixels from `pixels` [height, width, channels], which hold the part `held` (rows, columns) of the source.

    Each sum has one order, whatever the part: the result is the same to the bit.
    """
    tall = np.zeros((len(rows.places), *pixels.shape[1:]), dtype=np.float32)
    for places, weights in zip(rows.places.T, rows.weights.T, strict=True):
        tall += pixels[places - held[0].start] * weights[:, None, None]
    result = np.zeros((len(rows.places), len(columns.places), pixels.shape[2]), dtype=np.float32)
    for places, weights in zip(columns.places.T, columns.weights.T, strict=True):
        result += tall[:, places - held[1].start] * weights[None, :, None]
    return np.rint(result).clip(0, 255).astype(np.uint8)
