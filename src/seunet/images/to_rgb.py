"""Samples as stored → 8-bit RGB.  What is not plainly an image of light in three colours is refused by name."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.images.image import RgbArray

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
