"""What a short script finds without learning anything: colour deconvolution, Otsu's threshold, watershed.

The least that a trained model must be better than.  Its lengths are pixels at 0.25 µm; it is told nothing.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.color import rgb2hed
from skimage.feature import peak_local_max
from skimage.filters import threshold_otsu
from skimage.morphology import remove_small_objects
from skimage.segmentation import watershed

SMOOTHING_PX, OPENING_PX, LEAST_PX, APART_PX = 1.5, 3, 64, 7


def script_objects(rgb: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Objects numbered from 1, 0 where there is none."""
    haematoxylin = ndimage.gaussian_filter(rgb2hed(rgb)[..., 0], SMOOTHING_PX)
    dark = haematoxylin > threshold_otsu(haematoxylin)  # type: ignore[no-untyped-call]
    round_px = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * OPENING_PX + 1, 2 * OPENING_PX + 1))
    opened = cv2.morphologyEx(dark.astype(np.uint8), cv2.MORPH_OPEN, round_px)
    nuclei = remove_small_objects(ndimage.binary_fill_holes(opened), max_size=LEAST_PX)
    deep = ndimage.gaussian_filter(ndimage.distance_transform_edt(nuclei), 1.0)
    labels, _ = ndimage.label(nuclei)
    peaks = peak_local_max(deep, min_distance=APART_PX, labels=labels)  # type: ignore[no-untyped-call]
    seeds = np.zeros(nuclei.shape, dtype=np.int32)
    seeds[tuple(peaks.T)] = np.arange(1, len(peaks) + 1)
    found: NDArray[Any] = watershed(-deep, seeds, mask=nuclei)  # type: ignore[no-untyped-call]
    return found.astype(np.int32)
