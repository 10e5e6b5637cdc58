"""What an image is to the rest of this room, whatever its file format: levels of pixels, read region by region."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

RgbArray = NDArray[np.uint8]

MppSource = Literal["metadata", "tiff-tag", "user", "estimated"]


class Mpp(NamedTuple):
    """µm per pixel of level 0, and where the number comes from."""

    x: float
    y: float
    source: MppSource

    @property
    def mean(self) -> float:
        """The geometric mean: what keeps areas."""
        return float((self.x * self.y) ** 0.5)


class Level(NamedTuple):
    """One resolution of an image; level 0 is the finest."""

    width_px: int
    height_px: int
    downsample: float
    """How many pixels of level 0 lie along the side of one pixel here."""


class Bounds(NamedTuple):
    """The part of level 0 that was scanned (`openslide.bounds-*`); all of it where the file does not say."""

    x: int
    y: int
    width_px: int
    height_px: int


class Image(Protocol):
    """An open image."""

    name: str
    """The file's name, for messages."""
    format: str
    """E.g. "aperio", "generic-tiff", "ome-tiff", "png"."""
    levels: tuple[Level, ...]
    mpp: Mpp | None
    bounds: Bounds
    warnings: tuple[str, ...]
    """One line for each thing in the file that was not believed or had to be decided."""
    properties: dict[str, Any]
    """What else is known, for `seunet info`; plain JSON values."""

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        """The pixels [height, width, 3] from (x, y) of `level`, in pixels of that level; white beyond the image."""

    def close(self) -> None:
        """Let go of the file; reading afterwards is an error."""


class ArrayImage:
    """An image in memory."""

    def __init__(self, pixels: RgbArray, mpp: Mpp | None = None, name: str = "image") -> None:
        height_px, width_px = pixels.shape[:2]
        self.name, self.format, self.mpp = name, "array", mpp
        self.levels: tuple[Level, ...] = (Level(width_px, height_px, 1.0),)
        self.bounds = Bounds(0, 0, width_px, height_px)
        self.warnings: tuple[str, ...] = ()
        self.properties: dict[str, Any] = {}
        self._pixels = pixels

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        """See `Image.read`."""
        if level != 0:
            raise IndexError(f"level {level} of an image with one level")
        return cut(self._pixels, x, y, width_px, height_px)

    def close(self) -> None:
        """See `Image.close`."""


def cut(pixels: RgbArray, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
    """[height, width, 3] of `pixels` from (x, y); white where there are none."""
    out: RgbArray = np.full((height_px, width_px, 3), 255, dtype=np.uint8)
    left, top = max(x, 0), max(y, 0)
    part = pixels[top : max(y + height_px, 0), left : max(x + width_px, 0)]
    out[top - y : top - y + part.shape[0], left - x : left - x + part.shape[1]] = part
    return out
