"""Slides of scanners' own formats, through OpenSlide."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import openslide

from seunet.errors import InputError
from seunet.images.image import Bounds, Facts, Image, Level, RgbArray, region_error, whole
from seunet.images.pillow_codec import DECODE_FAULTS, fault_reason
from seunet.images.resolution import Stated, number, settled
from seunet.images.to_rgb import on_white

FAULTS: tuple[type[Exception], ...] = (openslide.OpenSlideError, *DECODE_FAULTS)

BLOCK_PX = 1024
"""Levels whose downsample is no whole number are read in blocks of a fixed grid."""


def detect_vendor(path: Path) -> str | None:
    """Whose format OpenSlide takes the file for; None if it is none it reads."""
    try:
        return openslide.OpenSlide.detect_format(path)
    except FAULTS:
        return None


class SlideImage(Image):
    """An OpenSlide object dies of its first error: it is opened again for the next region."""

    def __init__(self, facts: Facts, path: Path, slide: openslide.OpenSlide) -> None:
        super().__init__(facts)
        self._path = path
        self._slide: openslide.OpenSlide | None = slide

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        with self._lock:
            if self.levels[level].downsample.is_integer():
                self._piece(out, level, x, y)
            else:
                self._from_blocks(out, level, x, y)

    def _from_blocks(self, out: RgbArray, level: int, x: int, y: int) -> None:
        """The region from blocks that start at multiples of BLOCK_PX, wherever the region starts.

        OpenSlide takes a place in pixels of level 0.  Where a pixel of the level does not start on one of those, it
        blends neighbours by the remainder: without fixed starts a pixel would depend on the region it is read with.
        """
        size, (height_px, width_px) = self.levels[level], out.shape[:2]
        for top in range(y - y % BLOCK_PX, y + height_px, BLOCK_PX):
            for left in range(x - x % BLOCK_PX, x + width_px, BLOCK_PX):
                right, bottom = min(left + BLOCK_PX, size.width_px), min(top + BLOCK_PX, size.height_px)
                block: RgbArray = np.empty((bottom - top, right - left, 3), dtype=np.uint8)
                self._piece(block, level, left, top)
                x0, y0 = max(x, left), max(y, top)
                x1, y1 = min(x + width_px, right), min(y + height_px, bottom)
                out[y0 - y : y1 - y, x0 - x : x1 - x] = block[y0 - top : y1 - top, x0 - left : x1 - left]

    def _piece(self, out: RgbArray, level: int, x: int, y: int) -> None:
        downsample = self.levels[level].downsample
        place = (round(x * downsample), round(y * downsample))
        try:
            if self._slide is None:
                self._slide = openslide.OpenSlide(self._path)
            picture = self._slide.read_region(place, level, (out.shape[1], out.shape[0]))
        except FAULTS as error:
            self._let_go()
            raise region_error(self.name, level, x, y, out, error) from error
        if picture.getchannel("A").getextrema() == (255, 255):
            out[:] = np.asarray(picture.convert("RGB"))
        else:
            pixels = np.asarray(picture)
            out[:] = on_white(pixels[..., :3], pixels[..., 3])

    def _let_go(self) -> None:
        if self._slide is not None:
            self._slide.close()
            self._slide = None


def open_slide(path: Path, user_mpp: float | None) -> SlideImage:
    """Open what OpenSlide reads."""
    with ExitStack() as unless_opened:
        try:
            slide = unless_opened.enter_context(openslide.OpenSlide(path))
            image = SlideImage(_facts(slide, path.name, user_mpp), path, slide)
        except InputError:
            raise
        except FAULTS as error:
            raise InputError(f"{path.name}: cannot be opened ({fault_reason(error)}); copy it again") from error
        unless_opened.pop_all()
        return image


def _facts(slide: openslide.OpenSlide, name: str, user_mpp: float | None) -> Facts:
    found: Mapping[str, str] = dict(slide.properties)
    levels = tuple(
        Level(width, height, float(downsample))
        for (width, height), downsample in zip(slide.level_dimensions, slide.level_downsamples, strict=True)
    )
    power = found.get(openslide.PROPERTY_NAME_OBJECTIVE_POWER)
    mpp, doubts = settled(_stated(found), user_mpp, power)
    bounds, lines = _bounds(found, levels)
    vendor = found.get(openslide.PROPERTY_NAME_VENDOR, "slide")
    properties: dict[str, Any] = {"vendor": vendor}
    if power:
        properties["objective power"] = power
    width, height = found.get("openslide.level[0].tile-width"), found.get("openslide.level[0].tile-height")
    if width and height:
        properties["tile"] = [int(width), int(height)]
    return Facts(name, vendor, levels, mpp, bounds, (*lines, *doubts), properties)


def _stated(found: Mapping[str, str]) -> list[Stated]:
    x, y = found.get(openslide.PROPERTY_NAME_MPP_X), found.get(openslide.PROPERTY_NAME_MPP_Y)
    if x is None and y is None:
        return []
    return [Stated(number(x if x is not None else y), number(y if y is not None else x), "metadata", "openslide.mpp")]


def _bounds(found: Mapping[str, str], levels: tuple[Level, ...]) -> tuple[Bounds, list[str]]:
    """The scanned part; all of the slide, and a line, where what the file says cannot be."""
    names = [f"openslide.bounds-{side}" for side in ("x", "y", "width", "height")]
    if not any(name in found for name in names):
        return whole(levels), []
    values = [number(found.get(name)) for name in names]
    x, y, width, height = values
    inside = x >= 0 and y >= 0 and width >= 1 and height >= 1
    if not inside or x + width > levels[0].width_px or y + height > levels[0].height_px:
        said = ", ".join(f"{value:g}" for value in values)
        return whole(levels), [f"openslide.bounds ({said}) do not lie within the slide; not believed"]
    return Bounds(*(int(value) for value in values)), []
