"""Stain normalisation as a step: an image in, an image and a sentence out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seunet.maths.stain import NoStains, Stains, apply_stains, fit_stains

TARGET = Stains(
    matrix=np.array([[0.5, 0.7, 0.5], [0.2, 0.9, 0.3]]),
    strength=np.array([1.0, 1.0]),
)


def normalise_stain(rgb: NDArray[np.uint8], target: Stains = TARGET) -> tuple[NDArray[np.uint8], str]:
    """`rgb` as if stained like `target`; an image without two stains comes back as it is, and the sentence says so."""
    fitted = fit_stains(rgb)
    if isinstance(fitted, NoStains):
        return rgb, f"stain not normalised ({fitted.reason})"
    return apply_stains(rgb, fitted, target), "stain normalised (vahadane)"
