"""The rim between touching objects: a class of its own to learn, made from instance maps."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

OBJECT_CODE = 1


def rim_of(instances: NDArray[np.uint16], reach_px: int) -> NDArray[np.bool_]:
    """Pixels of an object from which a pixel of another one is at most `reach_px` away.

    The rim is part of the object, so objects without it are apart and objects with it have their whole area.
    """
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach_px + 1, 2 * reach_px + 1))
    highest = cv2.dilate(instances, disc)
    lowest = cv2.erode(np.where(instances == 0, np.uint16(65_535), instances), disc)
    rim: NDArray[np.bool_] = (instances > 0) & (highest != lowest)
    return rim


def with_rim(codes: NDArray[Any], instances: NDArray[np.uint16], width_um: float, mpp: float, rim_code: int) -> Any:
    """The class codes with the rim as a class of its own, `width_um` wide on either side."""
    reach_px = max(round(width_um / mpp), 1)
    return np.where(rim_of(instances, reach_px) & (codes == OBJECT_CODE), np.uint8(rim_code), codes)
