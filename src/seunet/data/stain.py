"""Stain normalisation as a step: an image in, an image and a sentence out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.maths.stain import NoStains, Stains, apply_stains, fit_stains

TARGET = Stains(
    matrix=np.array([[0.5155, 0.7529, 0.4092], [0.2671, 0.8152, 0.5139]]),
    strength=np.array([2.85, 1.538]),
)
"""The median of the fits to the 30 MoNuSeg training images (`make bench-data` computes it again)."""


def normalise_stain(rgb: NDArray[np.uint8], target: Stains = TARGET) -> tuple[NDArray[np.uint8], str]:
    """`rgb` [height, width, 3] as if stained like `target`, and a sentence on what was done.

    An image in which two stains cannot be distinguished comes back unchanged, and the sentence says why.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise InputError(f"`rgb` (={rgb.dtype} {list(rgb.shape)}) must be uint8 [height, width, 3]")
    fitted = fit_stains(rgb)
    if isinstance(fitted, NoStains):
        return rgb, f"stain not normalised ({fitted.reason})"
    return apply_stains(rgb, fitted, target), "stain normalised (vahadane)"


class VahadaneTransform:
    """`normalise_stain` as a callable for inference; `report` keeps the sentence of the last image.

    With `source` (stains fitted once to a whole slide) every tile is treated alike, whatever it shows.
    """

    def __init__(self, source: Stains | None = None, target: Stains = TARGET) -> None:
        self.source, self.target = source, target
        self.report = ""

    def __call__(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self.source is None:
            out, self.report = normalise_stain(rgb, self.target)
            return out
        self.report = "stain normalised (vahadane, given source)"
        return apply_stains(rgb, self.source, self.target)
