"""What an image is to everybody else, whatever its file format: levels of pixels, read region by region."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError, RegionError
from seunet.images.pillow_codec import fault_reason
from seunet.limits import MAX_SLIDE_PIXELS

RgbArray = NDArray[np.uint8]

MppSource = Literal["metadata", "tiff-tag", "user", "estimated"]


@dataclass(frozen=True)
class Mpp:
    """µm per pixel of level 0, and where the number comes from."""

    x: float
    y: float
    source: MppSource
    mean: float = field(init=False, repr=False)
    """The geometric mean: what keeps areas."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", float((self.x * self.y) ** 0.5))


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


@dataclass
class Facts:
    """What is known of an image without reading its pixels."""

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


class Image(Facts, ABC):
    """An open image; a reader of a format says how to `_fill` an array with pixels."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(**vars(facts))
        check_size(self.name, *self.levels[0][:2])
        self._lock = threading.RLock()
        self._closed = False

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        """The pixels [height, width, 3] from (x, y) of `level`, in pixels of that level; white beyond the image."""
        out: RgbArray = np.empty((height_px, width_px, 3), dtype=np.uint8)
        self.read_into(out, level, x, y)
        return out

    def read_into(self, out: RgbArray, level: int, x: int, y: int) -> None:
        """`read` into an array that is there already."""
        if not 0 <= level < len(self.levels):
            raise IndexError(f"level {level} of an image with {len(self.levels)}")
        if self._closed:
            raise ValueError(f"{self.name}: is closed")
        size, (height_px, width_px) = self.levels[level], out.shape[:2]
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + width_px, size.width_px), min(y + height_px, size.height_px)
        if (left, top, right, bottom) != (x, y, x + width_px, y + height_px):
            out[:] = 255
        if left < right and top < bottom:
            self._fill(out[top - y : bottom - y, left - x : right - x], level, left, top)

    def close(self) -> None:
        """Let go of the file; reading afterwards is an error."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._let_go()

    @abstractmethod
    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        """Put the pixels from (x, y) into `out`, all of which lies within the level."""

    def _let_go(self) -> None:
        """Close the file."""


class ArrayImage(Image):
    """An image in memory."""

    def __init__(self, pixels: RgbArray, mpp: Mpp | None = None, name: str = "image") -> None:
        levels = levels_of([(pixels.shape[1], pixels.shape[0])])
        super().__init__(Facts(name, "array", levels, mpp, whole(levels), (), {}))
        self._pixels = pixels

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        out[:] = self._pixels[y : y + out.shape[0], x : x + out.shape[1]]


def region_error(name: str, level: int, x: int, y: int, out: RgbArray, reason: BaseException | str) -> RegionError:
    """The error for a region, of the size of `out`, that could not be read."""
    height_px, width_px = out.shape[:2]
    why = fault_reason(reason) if isinstance(reason, BaseException) else reason
    where = f"level {level}, {width_px}×{height_px} px at ({x}, {y})"
    return RegionError(f"{name}: {where} cannot be read ({why}); copy the file again or go on without this part")


def check_size(name: str, width_px: int, height_px: int) -> None:
    """Refuse what no scanner makes."""
    if not 0 < width_px * height_px <= MAX_SLIDE_PIXELS:
        raise InputError(f"{name}: claims {width_px}×{height_px} pixels; it is broken: copy it again")


def whole(levels: tuple[Level, ...]) -> Bounds:
    """The bounds of an image that was scanned everywhere."""
    return Bounds(0, 0, levels[0].width_px, levels[0].height_px)


def levels_of(sizes: list[tuple[int, int]]) -> tuple[Level, ...]:
    """Levels from (width, height), the finest first; the downsample is the mean of both sides', as in OpenSlide."""
    width0, height0 = sizes[0]
    return tuple(Level(width, height, (width0 / width + height0 / height) / 2) for width, height in sizes)


def first_bytes(path: Path) -> bytes:
    """How a file begins; an InputError if it cannot be read at all."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give the image file")
        with path.open("rb") as file:
            return file.read(32)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
