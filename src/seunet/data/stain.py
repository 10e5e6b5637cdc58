"""Stain normalisation as a step: an image in, an image and a sentence out."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError, check_known
from seunet.maths.stain import LAMBDA_FIT, LAMBDA_TUNED, NoStains, Stains, apply_stains, fit_stains


class StainMethod(NamedTuple):
    """How stains are found, and which ones images get."""

    penalty: float
    """λ of the fit."""
    target: Stains
    """The median of the fits, by that λ, to the 30 MoNuSeg training images (benchmarks.measure.data.stain)."""


TARGET: Final = Stains(
    matrix=np.array([[0.5155, 0.7529, 0.4092], [0.2671, 0.8152, 0.5139]]),
    strength=np.array([2.85, 1.538]),
)

TUNED_TARGET: Final = Stains(
    matrix=np.array([[0.5484, 0.7387, 0.3918], [0.2170, 0.8194, 0.5305]]),
    strength=np.array([2.684, 1.44]),
)

STAIN_METHODS: Final = {
    "vahadane": StainMethod(LAMBDA_FIT, TARGET),
    "vahadane-tuned": StainMethod(LAMBDA_TUNED, TUNED_TARGET),
}


def stain_method(name: str) -> StainMethod:
    """The method of that name."""
    check_known("stain method", name, STAIN_METHODS)
    return STAIN_METHODS[name]


def normalise_stain(
    rgb: NDArray[np.uint8], target: Stains | None = None, *, method: str = "vahadane"
) -> tuple[NDArray[np.uint8], str]:
    """`rgb` [height, width, 3] as if stained like `target`, or as the method has it, and a sentence on what was done.

    An image in which two stains cannot be distinguished comes back unchanged, and the sentence says why.
    """
    chosen = stain_method(method)
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise InputError(f"`rgb` (={rgb.dtype} {list(rgb.shape)}) must be uint8 [height, width, 3]")
    fitted = fit_stains(rgb, chosen.penalty)
    if isinstance(fitted, NoStains):
        return rgb, f"stain not normalised ({fitted.reason})"
    return apply_stains(rgb, fitted, target or chosen.target), f"stain normalised ({method})"


class VahadaneTransform:
    """`normalise_stain` as a callable for inference; `report` keeps the sentence of the last image.

    With `source` (stains fitted once to a whole slide) every tile is treated alike, whatever it shows.
    """

    def __init__(self, source: Stains | None = None, target: Stains | None = None, *, method: str = "vahadane") -> None:
        self.source, self.target, self.method = source, target or stain_method(method).target, method
        self.report = ""

    def __call__(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self.source is None:
            out, self.report = normalise_stain(rgb, self.target, method=self.method)
            return out
        self.report = f"stain normalised ({self.method}, given source)"
        return apply_stains(rgb, self.source, self.target)
