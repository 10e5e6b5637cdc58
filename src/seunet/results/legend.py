"""What the pictures share: a strip below them that says what the colours mean and how long a micrometre is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from seunet.results.frame import Color

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

RgbArray = NDArray[np.uint8]
Line = tuple[Color | None, str]
"""A colour and what it stands for; None for the hatching of what was not analysed."""

LEGEND_PX: Final = 560
"""A narrower picture gets paper beside it, so that the legend is whole."""
TEXT_PX: Final = 16
MARGIN_PX: Final = 12
HATCH_PX: Final = 12
QUICKLY: Final = 1
"""The effort spent on compressing a picture: more takes two to three times as long and saves little."""
PAPER: Final = (255, 255, 255)
INK: Final = (40, 40, 40)
GREY: Final = (150, 150, 150)


def with_legend(picture: RgbArray, lines: Sequence[Line], um_per_px: float | None) -> RgbArray:
    """`picture` [height, width, 3] on paper, with its legend below."""
    height, width = picture.shape[:2]
    beside = np.full((height, max(0, LEGEND_PX - width), 3), PAPER, dtype=np.uint8)
    wide = np.concatenate([picture, beside], axis=1)
    return np.concatenate([wide, legend(wide.shape[1], lines, um_per_px)])


def legend(width: int, lines: Sequence[Line], um_per_px: float | None) -> RgbArray:
    """A strip with the lines and, where it is known, the scale."""
    from PIL import Image, ImageDraw

    font = _font()
    step = TEXT_PX + MARGIN_PX // 2
    bar = 1 if um_per_px is not None else 0
    image = Image.new("RGB", (width, 2 * MARGIN_PX + step * (len(lines) + bar)), PAPER)
    draw = ImageDraw.Draw(image)
    for number, (color, text) in enumerate(lines):
        top = MARGIN_PX + number * step
        _swatch(draw, top, color)
        draw.text((MARGIN_PX + 2 * TEXT_PX, top), text, fill=INK, font=font)
    if um_per_px is not None:
        length_px, text = scale_bar(um_per_px, width)
        middle = MARGIN_PX + len(lines) * step + TEXT_PX // 2
        draw.rectangle((MARGIN_PX, middle - 2, MARGIN_PX + length_px, middle + 2), fill=INK)
        draw.text((MARGIN_PX + length_px + TEXT_PX, middle - TEXT_PX // 2), text, fill=INK, font=font)
    return np.asarray(image)


def _font() -> FreeTypeFont:
    """DejaVu Sans as it comes with matplotlib: the same on every machine, with µ and the letters of class names."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", TEXT_PX)


def _swatch(draw: ImageDraw, top: int, color: Color | None) -> None:
    box = (MARGIN_PX, top, MARGIN_PX + TEXT_PX, top + TEXT_PX)
    if color is not None:
        draw.rectangle(box, fill=color, outline=INK)
        return
    draw.rectangle(box, fill=GREY, outline=INK)
    for shift in range(0, TEXT_PX, HATCH_PX // 2):
        draw.line((box[0] + shift, box[1], box[0], box[1] + shift), fill=PAPER, width=2)


def scale_bar(um_per_px: float, width_px: int) -> tuple[int, str]:
    """Length in pixels and name of a bar of 1, 2 or 5 × 10ⁿ µm that takes at most a quarter of the width."""
    most = um_per_px * width_px / 4
    power = 10.0 ** math.floor(math.log10(most))
    length = max(digit * power for digit in (1, 2, 5) if digit * power <= most)
    return round(length / um_per_px), f"{length / 1000:g} mm" if length >= 1000 else f"{length:g} µm"


def shades(count: int) -> list[tuple[float, ...]]:
    """Colours for what has an order, such as heads from the finest to the coarsest."""
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](0.08 + 0.8 * place / max(count - 1, 1))) for place in range(count)]
