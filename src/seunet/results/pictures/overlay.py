"""A picture to look at: the slide's thumbnail with what was found, and a legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import RgbArray
from seunet.results.find_objects import Object, Tally, gathered
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.label_plane import Labels, read_only
from seunet.results.pictures.legend import BAND_PIXELS, GREY, HATCH_PX, PAPER, Line, with_legend
from seunet.storage.atomic import write_bytes

MAX_THUMBNAIL_PX: Final = 4096
TINT: Final = 0.35
"""How much of a pixel is the class's colour where outlines are drawn; twice as much where objects are too small."""
OUTLINE_DOWNSAMPLE: Final = 5.0
"""Beyond it a nucleus has a few pixels in the picture, and an outline would be all of it."""


class NumberedObjects:
    """A picture of `height` × `width` of a plane, into which the objects that pass by are painted.

    The lines between touching nuclei are in no plane of classes.
    """

    def __init__(self, plane: Labels, height: int, width: int) -> None:
        self.numbers: NDArray[np.int32] = np.zeros((height, width), dtype=np.int32)
        """[height, width]: 1, 2, … for the object at the centre of each pixel, 0 for none."""
        self._rows, self._columns = _first_pixels(plane.height_px, height), _first_pixels(plane.width_px, width)

    def passing(self, found: Iterable[Object]) -> Iterator[Object]:
        """The same objects, painted."""
        from seunet.results.pictures.painting import paint_objects

        number = 1
        for group in gathered(found):
            paint_objects(self.numbers, number, self._rows, self._columns, *group.runs, group.stops)
            number += len(group)
            yield from group


def _first_pixels(length: int, small: int) -> NDArray[np.int64]:
    """[length + 1]: for each pixel of a line the first of `small` cells over it with its centre there or later."""
    centres = ((np.arange(small) + 0.5) * length / small).astype(np.int64)
    return np.searchsorted(centres, np.arange(length + 1))


def outlines_shown(plane: Labels, thumbnail: RgbArray) -> bool:
    """Whether objects are large enough in the picture to be outlined."""
    height, width = thumbnail.shape[:2]
    return bool(max(plane.height_px / height, plane.width_px / width) <= OUTLINE_DOWNSAMPLE)


def check_thumbnail(thumbnail: RgbArray) -> None:
    """Refuse what is no small picture."""
    if thumbnail.ndim != 3 or thumbnail.shape[2] != 3 or not 0 < max(thumbnail.shape[:2]) <= MAX_THUMBNAIL_PX:
        raise InputError(f"`thumbnail` {list(thumbnail.shape)} must be [height, width, 3] up to {MAX_THUMBNAIL_PX} px")


def write_overlay(path: Path, picture: RgbArray) -> None:
    """`overlay_picture` as PNG."""
    from seunet.images.pillow_codec import encode_png_quickly

    write_bytes(path, encode_png_quickly(picture))


def overlay_picture(
    thumbnail: RgbArray,
    plane: Labels,
    frame: Frame,
    tally: Tally,
    numbered: NumberedObjects | None = None,
    skipped_px: int = 0,
) -> RgbArray:
    """`thumbnail` [height, width, 3], which shows all of the plane, with the classes in their colours and a legend.

    Near the plane's own resolution objects are tinted and outlined, with `numbered` each by itself where they touch.
    Where the thumbnail is much smaller, a pixel is tinted by the share of it that a class covers.  What was not
    analysed is hatched; `skipped_px` of the plane were left out as glass.
    """
    from seunet.results.pictures.painting import draw_lines

    check_thumbnail(thumbnail)
    outlined = outlines_shown(plane, thumbnail)
    picture, labels, lost = _tinted(thumbnail, plane, frame, TINT if outlined else 2 * TINT)
    if outlined:
        drawn = np.array([code in frame.object_codes for code in range(len(frame.class_names) + 1)])
        numbers = np.zeros((0, 0), dtype=np.int32) if numbered is None else numbered.numbers
        draw_lines(picture, labels, numbers, drawn, np.array(frame.class_colors, dtype=np.uint8))
    _hatch(picture, lost)
    um_per_px = None if frame.mpp is None else frame.mpp * plane.width_px / thumbnail.shape[1]
    return with_legend(picture, legend_lines(frame, tally, skipped_px), um_per_px)


def _tinted(
    thumbnail: RgbArray, plane: Labels, frame: Frame, strength: float
) -> tuple[RgbArray, NDArray[np.uint8], NDArray[np.bool_]]:
    """The picture with the classes in their colours, the class of each of its pixels, and which were not analysed."""
    from seunet.results.pictures.painting import tint

    classes = len(frame.class_names)
    places = np.full(256, classes, dtype=np.uint8)
    places[:classes] = np.arange(classes)
    weights = np.zeros(classes + 1, dtype=np.float32)
    weights[list(frame.object_codes)] = strength
    colors = np.array([*frame.class_colors, PAPER], dtype=np.float32)
    picture = thumbnail.copy()
    labels, lost = np.empty(picture.shape[:2], np.uint8), np.empty(picture.shape[:2], np.bool_)
    down, across = _cells(plane.height_px, picture.shape[0]), _cells(plane.width_px, picture.shape[1])
    step = max(1, BAND_PIXELS * picture.shape[0] // (plane.height_px * plane.width_px))
    for first in range(0, picture.shape[0], step):
        part, rows = slice(first, first + step), down[:, first : first + step]
        top = int(rows[0, 0])
        strip = read_only(plane.read(top, 0, int(rows[1, -1]) - top, plane.width_px))
        tint(picture[part], labels[part], lost[part], strip, rows - top, across, places, colors, weights)
    return picture, labels, lost


def _cells(length: int, small: int) -> NDArray[np.int64]:
    """[(from, to), small]: the pixels of a line that each of `small` stands for; of a short line several for one."""
    count = min(length, small)
    edges = np.arange(count + 1) * length // count
    at = np.arange(small) * count // small
    return np.stack([edges[at], edges[at + 1]])


def _hatch(picture: RgbArray, where: NDArray[np.bool_]) -> None:
    """Grey and white diagonal stripes."""
    row, column = np.nonzero(where)
    stripe = ((row + column) // (HATCH_PX // 2)) % 2 == 0
    picture[row, column] = np.where(stripe[:, None], PAPER, GREY)


def legend_lines(frame: Frame, tally: Tally, skipped_px: int = 0) -> list[Line]:
    """What was found of each class, as a share of what counts.csv calls analysed, and how much was not."""
    analysed = max(1, int(tally.pixels.sum() - tally.pixels[NOT_ANALYSED]) - skipped_px)
    lines: list[Line] = []
    for code in frame.object_codes:
        share = 100 * int(tally.pixels[code]) / analysed
        objects = f"{int(tally.objects[code]):,} objects, {share:.1f} % of the analysed area"
        lines.append((frame.class_colors[code], f"{frame.class_names[code]}: {objects}"))
    if tally.pixels[NOT_ANALYSED]:
        lines.append((None, f"not analysed: {100 * int(tally.pixels[NOT_ANALYSED]) / int(tally.pixels.sum()):.1f} %"))
    return lines
