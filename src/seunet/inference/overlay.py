"""A picture to look at: the slide's thumbnail with what was found, and a legend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from seunet.atomic import write_bytes
from seunet.errors import InputError
from seunet.inference.frame import NOT_ANALYSED, Color, Frame
from seunet.inference.objects import Labels, Tally

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

RgbArray = NDArray[np.uint8]
Shares = NDArray[np.float32]

BAND_PIXELS: Final = 1 << 24
MAX_THUMBNAIL_PX: Final = 4096
TINT: Final = 0.35
"""How much of a pixel is the class's colour where outlines are drawn; twice as much where objects are too small."""
OUTLINE_DOWNSAMPLE: Final = 5.0
"""Beyond it a nucleus has a few pixels in the picture, and an outline would be all of it."""
LEGEND_PX: Final = 560
"""A narrower picture gets paper beside it, so that the legend is whole."""
TEXT_PX: Final = 16
MARGIN_PX: Final = 12
HATCH_PX: Final = 12
PAPER: Final = (255, 255, 255)
INK: Final = (40, 40, 40)
GREY: Final = (150, 150, 150)


def write_overlay(path: Path, thumbnail: RgbArray, plane: Labels, frame: Frame, tally: Tally) -> None:
    """Write `thumbnail` [height, width, 3], which shows all of the plane, with the classes in their colours, as PNG.

    Near the plane's own resolution objects are tinted and outlined.  Where the thumbnail is much smaller, a pixel is
    tinted by the share of it that a class covers.  What was not analysed is hatched.
    """
    from seunet.data.raster import encode_png

    height, width = thumbnail.shape[:2]
    if thumbnail.ndim != 3 or thumbnail.shape[2] != 3 or not 0 < max(height, width) <= MAX_THUMBNAIL_PX:
        raise InputError(f"`thumbnail` {list(thumbnail.shape)} must be [height, width, 3] up to {MAX_THUMBNAIL_PX} px")
    shares = class_shares(plane, frame, height, width)
    outlined = max(plane.height_px / height, plane.width_px / width) <= OUTLINE_DOWNSAMPLE
    picture = _tinted(thumbnail, shares, frame, TINT if outlined else 2 * TINT)
    if outlined:
        _outline(picture, shares, frame)
    _hatch(picture, shares[-1] >= 0.5)
    um_per_px = None if frame.mpp is None else frame.mpp * plane.width_px / width
    beside = np.full((height, max(0, LEGEND_PX - width), 3), PAPER, dtype=np.uint8)
    picture = np.concatenate([picture, beside], axis=1)
    write_bytes(path, encode_png(np.concatenate([picture, _legend(picture.shape[1], frame, tally, um_per_px)])))


def class_shares(plane: Labels, frame: Frame, height: int, width: int) -> Shares:
    """[classes + 1, height, width]: the share of each pixel of a smaller picture that each code has; 255 last."""
    codes = [*range(len(frame.class_names)), NOT_ANALYSED]
    rows, columns = min(height, plane.height_px), min(width, plane.width_px)
    shares = np.zeros((len(codes), rows, columns), dtype=np.float32)
    left = np.arange(columns + 1) * plane.width_px // columns
    for first, last, tops in _strips(plane, rows):
        strip = plane.read(int(tops[0]), 0, int(tops[-1] - tops[0]), plane.width_px)
        sizes = np.diff(tops)[:, None] * np.diff(left)[None]
        for place in np.flatnonzero(np.isin(codes, _codes_in(strip))):
            across = np.add.reduceat(strip == codes[place], left[:-1], axis=1, dtype=np.uint32)
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


def _tinted(thumbnail: RgbArray, shares: Shares, frame: Frame, strength: float) -> RgbArray:
    picture = thumbnail.astype(np.float32)
    for code in frame.object_codes:
        weight = strength * shares[code][..., None]
        picture += weight * (np.asarray(frame.class_colors[code], dtype=np.float32) - picture)
    return np.rint(picture).astype(np.uint8)


def _outline(picture: RgbArray, shares: Shares, frame: Frame) -> None:
    """Colour the pixels of a class that have a neighbour of another."""
    labels = shares.argmax(axis=0)
    edge = np.zeros(labels.shape, dtype=np.bool_)
    for one, other in ((edge, labels), (edge.T, labels.T)):
        differs = other[1:] != other[:-1]
        one[1:] |= differs
        one[:-1] |= differs
    for code in frame.object_codes:
        picture[edge & (labels == code)] = frame.class_colors[code]


def _hatch(picture: RgbArray, where: NDArray[np.bool_]) -> None:
    """Grey and white diagonal stripes."""
    row, column = np.nonzero(where)
    stripe = ((row + column) // (HATCH_PX // 2)) % 2 == 0
    picture[row, column] = np.where(stripe[:, None], PAPER, GREY)


def _legend(width: int, frame: Frame, tally: Tally, um_per_px: float | None) -> RgbArray:
    """A strip with a line for each class, for what was not analysed and, where known, for the scale."""
    from PIL import Image, ImageDraw

    font = _font()
    analysed = max(1, int(tally.pixels.sum() - tally.pixels[NOT_ANALYSED]))
    lines: list[tuple[Color | None, str]] = []
    for code in frame.object_codes:
        share = 100 * int(tally.pixels[code]) / analysed
        objects = f"{int(tally.objects[code]):,} objects, {share:.1f} % of the analysed area"
        lines.append((frame.class_colors[code], f"{frame.class_names[code]}: {objects}"))
    if tally.pixels[NOT_ANALYSED]:
        lines.append((None, f"not analysed: {100 * int(tally.pixels[NOT_ANALYSED]) / int(tally.pixels.sum()):.1f} %"))
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
