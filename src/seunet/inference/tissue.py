"""Where a slide has tissue: glass is most of it, and need not be looked at closely.

The glass is the lightest of what is common in a small picture of the slide.  Tissue is what is darker than it, or
coloured; faint is enough, and a margin is added: tissue that is missed is worse than glass that is analysed.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.inference.image import Image, RgbArray
from seunet.inference.magnification import Plan
from seunet.inference.thumbnail import thumbnail

THUMBNAIL_PX: Final = 2048
SMALL_PX: Final = 4_000_000
"""An image of fewer working pixels is analysed whole: it is a field that somebody chose."""

DARKER: Final = 10
"""Grey values below the glass, of 255."""
COLOURED: Final = 12
"""Between the strongest and the weakest of red, green, blue, relative to the glass."""
MARGIN: Final = 5
"""Side of the square by which tissue is widened, in pixels of the small picture."""


class TissueMask:
    """Tissue on a coarse grid over the working raster."""

    def __init__(self, mask: NDArray[np.bool_], width_px: int, height_px: int) -> None:
        self.mask, self.width_px, self.height_px = mask, width_px, height_px
        self._cell = width_px / mask.shape[1], height_px / mask.shape[0]
        self._sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), dtype=np.int64)
        self._sums[1:, 1:] = mask.cumsum(0).cumsum(1)

    @property
    def share(self) -> float:
        """How much of the image is tissue, from 0 to 1."""
        return float(self.mask.mean())

    def any_in(self, x: int, y: int, width_px: int, height_px: int) -> bool:
        """Whether there is tissue in these working pixels."""
        across, down = self._cell
        rows, columns = self.mask.shape
        left, right = int(x / across), min(columns, int(np.ceil((x + width_px) / across)))
        top, bottom = int(y / down), min(rows, int(np.ceil((y + height_px) / down)))
        sums = self._sums
        return bool(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left] > 0)


def tissue_mask(image: Image, plan: Plan) -> TissueMask | None:
    """The tissue of a slide; None for a small image, all of which is looked at."""
    if plan.width_px * plan.height_px <= SMALL_PX:
        return None
    return TissueMask(tissue_in(thumbnail(image, THUMBNAIL_PX)), plan.width_px, plan.height_px)


def tissue_in(picture: RgbArray) -> NDArray[np.bool_]:
    """Tissue in a small picture of a slide, [height, width]."""
    smooth = cv2.blur(picture, (3, 3)).astype(np.int16)
    glass = _glass(smooth)
    below = glass - smooth
    darker = below.mean(axis=2) > DARKER
    coloured = below.max(axis=2) - below.min(axis=2) > COLOURED
    marked = (darker | coloured).astype(np.uint8)
    widened: NDArray[np.bool_] = cv2.dilate(marked, np.ones((MARGIN, MARGIN), dtype=np.uint8)).astype(bool)
    return widened


def _glass(picture: NDArray[np.int16]) -> NDArray[np.int16]:
    """The colour of empty glass: the median of the lightest tenth, if that is light and grey; else white.

    A picture with no glass in it (a field full of tissue) must not take its palest tissue for glass.
    """
    grey = picture.mean(axis=2)
    lightest = picture[grey >= np.quantile(grey, 0.9)]
    colour = np.median(lightest, axis=0)
    if colour.min() < 200 or colour.max() - colour.min() > COLOURED:
        colour = np.full(3, 255.0)
    glass: NDArray[np.int16] = colour.astype(np.int16)
    return glass
