"""What the heads of a network say of the scale: how sure each is of an image at three sizes of its pixels.

Each head learns at the magnification that its filters fit, and to be unsure of the rest
(docs/decisions/0031-each-head-at-its-own-magnification.md), under changing optics and stains.  So which heads are sure
carries the scale, and hangs less on what single pixels look like than the texture does.  The heads span two octaves;
the image shrunk and enlarged by 2 makes it four.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seunet.images.image import RgbArray
from seunet.maths.rescaling import rescale_pixels

FloatArray = NDArray[np.float64]
Sureness = Callable[[RgbArray], NDArray[np.float32]]
"""Pixels [height, width, 3] → how sure each head is of each of them, 0 … 1: [γ, height, width]."""

SIZES: Final = (1.0, 0.5, 2.0)
LOOK_PX: Final = 384
"""Per side of the part of a region that is looked at, at most: a third of a second of one core for five heads."""

TISSUE_LIGHT: Final = 219
"""A pixel is tissue where some colour is darker than this: optical density 0.15."""

_LEAST: Final = 0.003
"""A mean is kept this far from 0 and 1, where its logit has no end."""
_STEP: Final = 4


def head_profile(rgb: RgbArray, sureness: Sureness) -> FloatArray:
    """The logit of the mean sureness over tissue, of each head at each of `SIZES`: [3 γ]."""
    part = part_with_tissue(rgb, LOOK_PX)
    height, width = part.shape[:2]
    middle = part[height // 4 : height - height // 4, width // 4 : width - width // 4]
    shown = [rescale_pixels(middle if size > 1 else part, size, antialias=True) for size in SIZES]
    return np.concatenate([_logit(_over_tissue(pixels, sureness(pixels))) for pixels in shown])


def part_with_tissue(rgb: RgbArray, side_px: int) -> RgbArray:
    """Of nine places spread over the image, the part with the most tissue; the middle one if they are alike."""
    height, width = (min(side, side_px) for side in rgb.shape[:2])
    free = rgb.shape[0] - height, rgb.shape[1] - width
    places = [(free[0] * row // 2, free[1] * column // 2) for row in (1, 0, 2) for column in (1, 0, 2)]
    parts = [rgb[y : y + height, x : x + width] for y, x in dict.fromkeys(places)]
    return np.ascontiguousarray(max(parts, key=lambda part: int(is_tissue(part[::_STEP, ::_STEP]).sum())))


def is_tissue(rgb: RgbArray) -> NDArray[np.bool_]:
    """Where some colour is darker than glass."""
    dark: NDArray[np.bool_] = rgb.min(axis=2) < TISSUE_LIGHT
    return dark


def _over_tissue(pixels: RgbArray, sure: NDArray[np.float32]) -> FloatArray:
    tissue = is_tissue(pixels)
    return np.asarray(sure[:, tissue if tissue.any() else ~tissue].mean(axis=1, dtype=np.float64))


def _logit(mean: FloatArray) -> FloatArray:
    kept = np.clip(mean, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(kept / (1 - kept)))
