"""Samples as stored, or as somebody holds them in memory → 8-bit RGB.

What is not plainly an image of light in three colours is refused by name.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import RgbArray
from seunet.limits import MAX_IMAGE_PIXELS

Samples = NDArray[Any]
Alpha = Literal["none", "plain", "premultiplied", "unknown"]


class Coding(NamedTuple):
    """How the samples [height, width, channels] of an image are to be taken."""

    colours: int
    """1: grey, or an index into the palette; 3: red, green, blue."""
    alpha: Alpha = "none"
    white_is_zero: bool = False
    palette: RgbArray | None = None

    def decisions(self, bits: int) -> list[str]:
        """A line for each thing that is done to get 8-bit RGB."""
        out = []
        if bits == 16:
            out.append("16 bits per channel: the upper 8 are used, by the full range of the type")
        if self.palette is not None:
            out.append("palette expanded to RGB")
        elif self.colours == 1:
            out.append("grey image: the same value in red, green and blue")
        if self.alpha == "unknown":
            out.append("a fourth channel of unknown meaning left out")
        elif self.alpha != "none":
            out.append("transparency laid on white")
        return out


def to_rgb(samples: Samples, coding: Coding) -> RgbArray:
    """[height, width, channels] of 8 or 16 bits → [height, width, 3]."""
    eight = (samples >> 8).astype(np.uint8) if samples.dtype.itemsize == 2 and coding.palette is None else samples
    colours = eight[..., : coding.colours]
    if coding.palette is not None:
        expanded: RgbArray = coding.palette[np.minimum(colours[..., 0], len(coding.palette) - 1)]
        return expanded
    if coding.white_is_zero:
        colours = 255 - colours
    if coding.colours == 1:
        colours = np.repeat(colours, 3, axis=-1)
    if coding.alpha in ("plain", "premultiplied"):
        colours = on_white(colours, eight[..., coding.colours], premultiplied=coding.alpha == "premultiplied")
    return np.ascontiguousarray(colours)


def on_white(colours: RgbArray, alpha: RgbArray, premultiplied: bool = False) -> RgbArray:
    """What is seen when [height, width, 3] with its opacity [height, width] lies on a white sheet."""
    if (alpha == 255).all():
        return colours
    opacity = alpha[..., None].astype(np.uint16)
    if premultiplied:
        seen = np.minimum(colours + (255 - opacity), 255)
    else:
        seen = (colours * opacity + 255 * (255 - opacity) + 127) // 255
    out: RgbArray = seen.astype(np.uint8)
    return out


CHANNELS: Final = (1, 3, 4)
"""Grey; red, green, blue; these and opacity."""


def rgb_pixels(image: Any) -> RgbArray:
    """A picture in memory → uint8 [height, width, 3].

    A PIL image, a NumPy array, a torch tensor or anything with `__array__`; bytes or floats in 0 … 1; grey, RGB or RGBA
    (laid on white); channels last, or first where that is plain.
    """
    samples = _samples(image)
    shape = "×".join(map(str, samples.shape)) or "()"
    if samples.ndim == 4 and samples.shape[0] == 1:
        samples = samples[0]
    if samples.ndim == 2:
        samples = samples[..., None]
    if samples.ndim == 3 and samples.shape[0] in CHANNELS and (_is_tensor(image) or samples.shape[2] not in CHANNELS):
        samples = samples.transpose(1, 2, 0)
    if samples.ndim != 3 or samples.shape[2] not in CHANNELS:
        raise InputError(f"`image` of shape {shape} must be [height, width, 3]; convert it to RGB first")
    if not samples.size:
        raise InputError(f"`image` of shape {shape} has no pixels")
    if samples.shape[0] * samples.shape[1] > MAX_IMAGE_PIXELS:
        raise InputError(f"`image` of shape {shape} is too large to be held; save it and use `seunet segment`")
    colours = 1 if samples.shape[2] == 1 else 3
    coding = Coding(colours, alpha="plain" if samples.shape[2] == 4 else "none")
    return to_rgb(_bytes(samples), coding)


def _samples(image: Any) -> Samples:
    if hasattr(image, "mode") and hasattr(image, "convert"):  # PIL's, of whatever class
        if image.mode in ("L", "RGB", "RGBA", "I", "F") or image.mode.startswith("I;"):
            return np.asarray(image)
        transparent = "A" in image.getbands() or "transparency" in image.info
        return np.asarray(image.convert("RGBA" if transparent else "RGB"))
    if _is_tensor(image):
        held = image.detach().cpu()
        return np.asarray(held.float() if held.is_floating_point() else held)
    if not hasattr(image, "__array__"):
        raise InputError(
            f"`image` is a {type(image).__name__}; give a path, a PIL image, a NumPy array, a tensor or what has "
            "`__array__`"
        )
    return np.asarray(image)


def _is_tensor(image: Any) -> bool:
    return hasattr(image, "detach") and hasattr(image, "cpu")


def _bytes(samples: Samples) -> RgbArray:
    if samples.dtype == np.uint8:
        return samples
    if samples.dtype.kind != "f":
        raise InputError(f"`image` of type {samples.dtype} must be uint8, or float in 0 … 1; scale and convert it")
    lowest, highest = float(samples.min()), float(samples.max())
    if not (lowest >= 0 and highest <= 1):  # false for what is no number too
        raise InputError(
            f"`image` of type {samples.dtype} has values from {lowest:.4g} to {highest:.4g}; floats must lie in 0 … 1: "
            "divide by the largest possible value, or give uint8"
        )
    out: RgbArray = np.rint(samples * 255).astype(np.uint8)
    return out
