"""Square tiles of what is shown, at 1 : 1, 1 : 2, 1 : 4, …: the slide as JPEG, codes and heat as coloured PNG.

A tile pixel that covers several pixels has their mean.  For codes that is the mean of their colours, so that small
objects fade with their share of the area and none is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.images.image import Level, RgbArray
from seunet.results.frame import NOT_ANALYSED
from seunet.viewer.readers import Readers

TILE_PX: Final = 512
JPEG_QUALITY: Final = 85
BAND_PIXELS: Final = 1 << 22
"""Pixels that are read at once; a tile of less detail than the file has is made band by band."""
FAITHFUL: Final = 4
"""Coarser levels of codes are made by majority, and nuclei are lost there: means are taken from this one …"""
FAITHFUL_PIXELS: Final = 1 << 29
"""… or, in slides of more pixels, from the next, or the first look at them would take seconds."""
OVERVIEW_PX: Final = 2048
"""Tiles of codes from so far that all is at most this wide are cut out of one plane: each would read the whole file."""
STRIPE_PX: Final = 6
CLEAR: Final = (0, 0, 0, 0)
UNSEEN: Final = (140, 140, 140, 150)

Rgba = NDArray[np.uint8]
Paint = Callable[[RgbArray], NDArray[np.uint8]]


class Grid(NamedTuple):
    """The tiles of an image of `width` × `height` level-0 pixels."""

    width: int
    height: int

    @property
    def coarsest(self) -> int:
        """The first halving at which everything is one tile."""
        return max(0, math.ceil(math.log2(max(self.width, self.height) / TILE_PX)))

    def size(self, halvings: int, x: int, y: int) -> tuple[int, int] | None:
        """(width, height) of a tile in its own pixels; None if there is no such tile."""
        if not (0 <= halvings <= self.coarsest and x >= 0 and y >= 0):
            return None
        left = [side - TILE_PX * place for side, place in zip(self.whole(halvings), (x, y), strict=True)]
        return None if min(left) <= 0 else (min(TILE_PX, left[0]), min(TILE_PX, left[1]))

    @property
    def overview(self) -> int:
        """The first halving at which everything is `OVERVIEW_PX` wide and high at most."""
        return max(0, math.ceil(math.log2(max(self.width, self.height) / OVERVIEW_PX)))

    def whole(self, halvings: int) -> tuple[int, int]:
        """(width, height) of everything."""
        return -(-self.width // 2**halvings), -(-self.height // 2**halvings)


class Source(NamedTuple):
    """An image file, and how many pixels of the slide's level 0 lie along the side of one of its own level 0."""

    path: Path
    to_level0: float = 1.0
    faithful: float = math.inf
    """No level beyond this downsample is used."""


def tile_pixels(
    readers: Readers, source: Source, halvings: int, x: int, y: int, size: tuple[int, int], paint: Paint | None = None
) -> NDArray[np.uint8]:
    """[height, width, channels] of a tile; `paint` makes colours of what is read, before means are taken."""
    levels = readers.image(source.path).levels
    number = level_for(levels, 2**halvings / source.to_level0, source.faithful)
    ratio = 2**halvings / (source.to_level0 * levels[number].downsample)
    width, height = size
    left, right = x * TILE_PX * ratio, (x * TILE_PX + width) * ratio
    rows = max(1, min(height, int(BAND_PIXELS / (max(right - left, 1) * ratio))))
    bands = []
    for first in range(0, height, rows):
        count = min(rows, height - first)
        top = (y * TILE_PX + first) * ratio
        box = _whole(left, right), _whole(top, top + count * ratio)
        read = readers.read(source.path, number, box[0][0], box[1][0], box[0][1], box[1][1])
        painted = read if paint is None else paint(read)
        if painted.shape[:2] != (count, width):
            kind = cv2.INTER_AREA if ratio > 1 else cv2.INTER_LINEAR if paint is None else cv2.INTER_NEAREST
            painted = np.asarray(cv2.resize(painted, (width, count), interpolation=kind), dtype=np.uint8)
        bands.append(painted)
    return np.concatenate(bands)


def cut_out(plane: NDArray[np.uint8], halvings: int, x: int, y: int, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A tile `halvings` coarser than the plane of everything; each of its pixels is a mean."""
    width, height = size
    top, left = TILE_PX * y << halvings, TILE_PX * x << halvings
    part = plane[top : top + (height << halvings), left : left + (width << halvings)]
    beyond = [(0, (length << halvings) - have) for length, have in zip((height, width), part.shape, strict=False)]
    filled = np.pad(part, [*beyond, (0, 0)])
    return np.asarray(cv2.resize(filled, size, interpolation=cv2.INTER_AREA), dtype=np.uint8) if halvings else filled


def level_for(levels: tuple[Level, ...], downsample: float, most: float = math.inf) -> int:
    """The coarsest level with at least this detail, none beyond `most`."""
    fits = [n for n, level in enumerate(levels) if level.downsample <= min(downsample, most) * 1.01]
    return max(fits, key=lambda n: levels[n].downsample, default=0)


def _whole(start: float, stop: float) -> tuple[int, int]:
    """(first pixel, how many) that cover start … stop; a thousandth beside a pixel edge is on it."""
    first = math.floor(start + 1e-3)
    return first, max(1, math.ceil(stop - 1e-3) - first)


def jpeg(pixels: RgbArray) -> bytes:
    """A tile of the slide."""
    return cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()


def png(premultiplied: Rgba) -> bytes:
    """A coloured tile: colours were multiplied by their opacity, so that means are right, and are divided again."""
    whole = premultiplied[..., [2, 1, 0, 3]]
    partly = (premultiplied[..., 3] > 0) & (premultiplied[..., 3] < 255)
    mixed = whole[partly].astype(np.float32)
    whole[partly, :3] = np.minimum(np.rint(mixed[:, :3] * (255 / mixed[:, 3:])), 255)
    return cv2.imencode(".png", whole, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes()


def code_painter(colors: dict[int, tuple[int, int, int]]) -> Paint:
    """Grey values that are codes → colours; other codes are clear, and what was not analysed has stripes."""
    table = color_table({code: (*color, 255) for code, color in colors.items()})

    def paint(read: RgbArray) -> Rgba:
        codes = read[..., 0]
        out = _looked_up(table, codes)
        unseen = codes == NOT_ANALYSED
        if unseen.any():
            row, column = np.nonzero(unseen)
            striped = ((row + column) // STRIPE_PX) % 2 == 0
            out[row, column] = np.where(striped[:, None], _premultiplied(UNSEEN), _premultiplied((255, 255, 255, 150)))
        return out

    return paint


def heat_painter(scale: list[tuple[int, int, int]], channel: int = 0) -> Paint:
    """Grey values → the colours of a scale, from low and clear to high and opaque."""
    places, ends = np.arange(256), np.linspace(0, 255, len(scale))
    channels = [np.interp(places, ends, [color[number] for color in scale]).astype(int).tolist() for number in range(3)]
    colors = [(red, green, blue, value) for value, (red, green, blue) in enumerate(zip(*channels, strict=True))]
    table = color_table(dict(enumerate(colors)))
    return lambda read: _looked_up(table, read[..., channel])


def color_table(colors: dict[int, tuple[int, int, int, int]]) -> Rgba:
    """[256, 4]: colours multiplied by their opacity."""
    table = np.zeros((256, 4), dtype=np.uint8)
    for code, color in colors.items():
        if 0 <= code < 256:
            table[code] = _premultiplied(color)
    return table


def _looked_up(table: Rgba, codes: NDArray[np.uint8]) -> Rgba:
    """`table[codes]` in a quarter of the time."""
    dense = np.ascontiguousarray(codes)
    return np.asarray(cv2.merge([cv2.LUT(dense, column) for column in np.ascontiguousarray(table.T)]), dtype=np.uint8)


def _premultiplied(color: tuple[int, int, int, int]) -> Rgba:
    red, green, blue, alpha = color
    return np.array([red * alpha // 255, green * alpha // 255, blue * alpha // 255, alpha], dtype=np.uint8)
