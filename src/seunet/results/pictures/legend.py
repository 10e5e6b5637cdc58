"""What the pictures share: how much of each of their pixels every code has, and a legend with a scale below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from seunet.images.image import RgbArray
from seunet.results.frame import Color
from seunet.results.label_plane import Labels
from seunet.system import settle_without_home

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Shares = NDArray[np.float32]
Line = tuple[Color | None, str]
"""A colour and what it stands for; None for the hatching of what was not analysed."""

BAND_PIXELS: Final = 1 << 24
LEGEND_PX: Final = 560
"""A narrower picture gets paper beside it, so that the legend is whole."""
TEXT_PX: Final = 16
MARGIN_PX: Final = 12
HATCH_PX: Final = 12
PAPER: Final = (255, 255, 255)
INK: Final = (40, 40, 40)
GREY: Final = (150, 150, 150)


def code_shares(plane: Labels, codes: Sequence[int], height: int, width: int) -> Shares:
    """[codes, height, width]: the share of each pixel of a smaller picture that each code has."""
    rows, columns = min(height, plane.height_px), min(width, plane.width_px)
    shares = np.zeros((len(codes), rows, columns), dtype=np.float32)
    left = np.arange(columns + 1) * plane.width_px // columns
    for first, last, tops in _strips(plane, rows):
        strip = plane.read(int(tops[0]), 0, int(tops[-1] - tops[0]), plane.width_px)
        sizes = np.diff(tops)[:, None] * np.diff(left)[None]
        present = set(_codes_in(strip).tolist())
        for place, code in enumerate(codes):
            if code not in present:
                continue
            across = np.add.reduceat(strip == code, left[:-1], axis=1, dtype=np.uint32)
            shares[place, first:last] = np.add.reduceat(across, tops[:-1] - tops[0], axis=0) / sizes
    if (rows, columns) == (height, width):
        return shares
    at_row, at_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    return shares[:, at_row[:, None], at_column[None]]


def _strips(plane: Labels, rows: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Rows first … last − 1 of the picture, and the rows of the plane at which these begin and the last ends."""
    tops = np.arange(rows + 1) * plane.height_px // rows
    step = max(1, BAND_PIXELS * rows // (plane.height_px * plane.width_px))
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield first, last, tops[first : last + 1]


def _codes_in(strip: NDArray[np.uint8]) -> NDArray[np.intp]:
    import cv2

    return np.flatnonzero(cv2.calcHist([strip], [0], None, [256], [0, 256]))


def with_legend(picture: RgbArray, lines: Sequence[Line], um_per_px: float | None) -> RgbArray:
    """`picture` [height, width, 3] on paper, with its legend below."""
    height, width = picture.shape[:2]
    below = legend(max(LEGEND_PX, width), lines, um_per_px)
    page = np.empty((height + len(below), below.shape[1], 3), dtype=np.uint8)
    page[:height, :width], page[:height, width:], page[height:] = picture, PAPER, below
    return page


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
    settle_without_home()
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
    settle_without_home()
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](0.08 + 0.8 * place / max(count - 1, 1))) for place in range(count)]
