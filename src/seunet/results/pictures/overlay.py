"""A picture to look at: the slide's thumbnail with what was found, and a legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import RgbArray
from seunet.results.find_objects import Object, Tally
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.label_plane import Labels
from seunet.results.pictures.legend import GREY, HATCH_PX, PAPER, QUICKLY, Line, Shares, code_shares, with_legend
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
        for number, one in enumerate(found, start=1):
            self._paint(one, number)
            yield one

    def _paint(self, one: Object, number: int) -> None:
        row, start, end = one.runs
        top, bottom, left, right = self._rows[row], self._rows[row + 1], self._columns[start], self._columns[end]
        shown = (top < bottom) & (left < right)
        for place in np.stack([top, bottom, left, right], axis=1)[shown].tolist():
            self.numbers[place[0] : place[1], place[2] : place[3]] = number


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
    from seunet.images.pillow_codec import encode_png

    write_bytes(path, encode_png(picture, compress_level=QUICKLY))


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
    check_thumbnail(thumbnail)
    height, width = thumbnail.shape[:2]
    shares = code_shares(plane, [*range(len(frame.class_names)), NOT_ANALYSED], height, width)
    outlined = outlines_shown(plane, thumbnail)
    picture = _tinted(thumbnail, shares, frame, TINT if outlined else 2 * TINT)
    if outlined:
        _outline(picture, shares, frame, None if numbered is None else numbered.numbers)
    _hatch(picture, shares[-1] >= 0.5)
    um_per_px = None if frame.mpp is None else frame.mpp * plane.width_px / width
    return with_legend(picture, legend_lines(frame, tally, skipped_px), um_per_px)


def _tinted(thumbnail: RgbArray, shares: Shares, frame: Frame, strength: float) -> RgbArray:
    picture = thumbnail.astype(np.float32)
    for code in frame.object_codes:
        weight = strength * shares[code][..., None]
        picture += weight * (np.asarray(frame.class_colors[code], dtype=np.float32) - picture)
    return np.rint(picture).astype(np.uint8)


def _outline(picture: RgbArray, shares: Shares, frame: Frame, numbers: NDArray[np.int32] | None) -> None:
    """Colour the pixels of a class that have a neighbour of another class, or two objects that touch."""
    labels = shares.argmax(axis=0)
    edge = _borders(labels, np.ones(labels.shape, dtype=np.bool_))
    if numbers is not None:
        edge |= _borders(numbers, numbers > 0)
    for code in frame.object_codes:
        picture[edge & (labels == code)] = frame.class_colors[code]


def _borders(values: NDArray[Any], within: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a pixel differs from one of its four neighbours, both of them `within`."""
    edge = np.zeros(values.shape, dtype=np.bool_)
    for found, line, inside in ((edge, values, within), (edge.T, values.T, within.T)):
        differs = (line[1:] != line[:-1]) & inside[1:] & inside[:-1]
        found[1:] |= differs
        found[:-1] |= differs
    return edge


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
