"""PNG, JPEG, BMP and WebP: decoded once, then cut from memory.

An orientation in the EXIF data is not applied but said: the pixels are taken as stored, as QuPath and most tools of the
field do, so that polygons lie where those tools show the image.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image as Pillow

from seunet.errors import InputError
from seunet.images.image import Facts, Image, RgbArray, levels_of, whole
from seunet.images.pillow_codec import DECODE_FAULTS, load_raster, mode_name, open_raster, stored_bits
from seunet.images.resolution import MICRONS, Stated, settled
from seunet.images.to_rgb import Coding, to_rgb

ORIENTATION = 0x0112
KINDS = {"PNG": "png", "JPEG": "jpeg", "BMP": "bmp", "WEBP": "webp"}
"""Names of Pillow, and ours."""
CODINGS = {
    "RGB": Coding(3),
    "RGBA": Coding(3, alpha="plain"),
    "L": Coding(1),
    "LA": Coding(1, alpha="plain"),
    "I;16": Coding(1),
}


class PictureImage(Image):
    """One level of pixels in memory, held by Pillow."""

    def __init__(self, facts: Facts, picture: Pillow.Image, coding: Coding, file: BinaryIO) -> None:
        super().__init__(facts)
        self._picture, self._coding, self._file = picture, coding, file

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        height_px, width_px = out.shape[:2]
        with self._lock:
            part = self._picture.crop((x, y, x + width_px, y + height_px))
        out[:] = to_rgb(np.asarray(part).reshape(height_px, width_px, -1), self._coding)

    def _let_go(self) -> None:
        self._picture.close()
        self._file.close()


def open_picture(path: Path, user_mpp: float | None) -> PictureImage:
    """Open and decode one of `KINDS`."""
    file = path.open("rb")
    try:
        picture, pages = open_raster(file, path.name, tuple(KINDS))
        bits, kind = stored_bits(picture), KINDS[picture.format or ""]
        warnings = _warnings(picture, pages)
        stated = _stated(picture)
        load_raster(picture, path.name)
        picture, palette_line = _without_palette(picture)
        coding = CODINGS.get(picture.mode)
        if coding is None:
            raise InputError(f"{path.name}: colour mode {mode_name(picture.mode)}; convert it to 8-bit RGB first")
        mpp, lines = settled(stated, user_mpp, None)
        levels = levels_of([picture.size])
        decisions = palette_line or coding.decisions(bits)
        properties = {"bits": bits, "colour mode": picture.mode}
        facts = Facts(path.name, kind, levels, mpp, whole(levels), (*warnings, *decisions, *lines), properties)
        return PictureImage(facts, picture, coding, file)
    except BaseException:
        file.close()
        raise


def _warnings(picture: Pillow.Image, pages: int) -> list[str]:
    out = []
    if pages > 1:
        out.append(f"holds {pages} pictures; the first is read")
    orientation = 1
    with suppress(*DECODE_FAULTS):  # of broken EXIF data nothing is needed
        orientation = picture.getexif().get(ORIENTATION, 1)
    if orientation != 1:
        out.append(f"EXIF orientation {orientation} is not applied; the pixels are taken as stored")
    return out


def _stated(picture: Pillow.Image) -> list[Stated]:
    """The resolution in the header (PNG pHYs, JFIF density), which Pillow gives in dots per inch."""
    dpi = picture.info.get("dpi")
    if not isinstance(dpi, tuple) or len(dpi) != 2 or not all(value > 0 for value in dpi):
        return []
    x, y = (MICRONS["inch"] / float(value) for value in dpi)
    return [Stated(x, y, "metadata", f"resolution of {float(dpi[0]):.4g} dpi")]


def _without_palette(picture: Pillow.Image) -> tuple[Pillow.Image, list[str]]:
    """Palettes and single transparent colours expanded; only these need a second copy of the pixels."""
    if "transparency" in picture.info and picture.mode in ("P", "L", "RGB"):
        return picture.convert("RGBA"), ["transparent colour laid on white"]
    if picture.mode == "P":
        return picture.convert("RGB"), ["palette expanded to RGB"]
    return picture, []
