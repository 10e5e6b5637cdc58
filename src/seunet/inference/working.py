"""The pixels a network sees: those of one level of an image, or resampled from them.

A pixel does not depend on the region it is read in: where it looks is computed from its place in the whole.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seunet.inference.image import Image, RgbArray
from seunet.inference.magnification import Plan


class WorkingImage:
    """`image` on the raster of `plan`."""

    def __init__(self, image: Image, plan: Plan) -> None:
        self.image, self.plan = image, plan
        self.width_px, self.height_px = plan.width_px, plan.height_px
        self._level = image.levels[plan.level]

    def read(self, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        """[height, width, 3] from (x, y) in working pixels; white beyond the image."""
        if self.plan.resample == 1:
            return self.image.read(self.plan.level, x, y, width_px, height_px)
        out: RgbArray = np.full((height_px, width_px, 3), 255, dtype=np.uint8)
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + width_px, self.width_px), min(y + height_px, self.height_px)
        if right > left and bottom > top:
            out[top - y : bottom - y, left - x : right - x] = self._resampled(left, top, right, bottom)
        return out

    def _resampled(self, left: int, top: int, right: int, bottom: int) -> RgbArray:
        columns, across = taps(left, right, self.plan.resample, self._level.width_px)
        rows, down = taps(top, bottom, self.plan.resample, self._level.height_px)
        x, y = int(columns.min()), int(rows.min())
        source = self.image.read(self.plan.level, x, y, int(columns.max()) + 1 - x, int(rows.max()) + 1 - y)
        # Columns first: the narrower map is the cheaper one to combine rows of.
        narrow = np.zeros((source.shape[0], right - left, 3), dtype=np.float32)
        for place, weight in zip((columns - x).T, across.T, strict=True):
            narrow += weight[:, None] * source[:, place]
        small = np.zeros((bottom - top, right - left, 3), dtype=np.float32)
        for place, weight in zip((rows - y).T, down.T, strict=True):
            small += weight[:, None, None] * narrow[place]
        return np.clip(np.rint(small), 0, 255).astype(np.uint8)


def taps(start: int, stop: int, resample: float, length: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Which pixels of a line of `length` make up the resampled ones start … stop − 1, and by how much: [pixels, taps].

    A triangle as wide as two pixels of the coarser of the two rasters: linear interpolation where the line is
    enlarged, an average where it is shrunk.  Pixel centres lie at (i + ½); beyond the ends the last pixel goes on.
    """
    reach = max(1.0, 1 / resample)
    centres = (np.arange(start, stop, dtype=np.float64) + 0.5) / resample - 0.5
    count = 2 * math.ceil(reach) + 1
    places = np.floor(centres)[:, None] + np.arange(count) - math.ceil(reach) + 1
    weights = np.clip(1 - np.abs(places - centres[:, None]) / reach, 0, None)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, length - 1).astype(np.intp), weights.astype(np.float32)
