"""TIFF, BigTIFF and OME-TIFF, with or without a pyramid, through tifffile: only what a region touches is read."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tifffile import TiffFile, TiffPage

from seunet.errors import InputError
from seunet.images.image import Facts, Image, Level, RgbArray, check_size, levels_of, region_error, whole
from seunet.images.ome import is_ome, parse_ome
from seunet.images.pillow_codec import fault_reason
from seunet.images.resolution import MICRONS, UNITS, Stated, number, settled
from seunet.images.tiff_pages import (
    FAULTS,
    area,
    check_segments,
    coding_of,
    is_aperio,
    is_raw_rows,
    missing_segments,
    pyramid,
    segment_size,
)
from seunet.images.tiff_tiles import STRIP_CACHE_BYTES, TILE_CACHE_BYTES, RawRows, SegmentCache, Segments
from seunet.images.to_rgb import Coding
from seunet.limits import MAX_IMAGE_PIXELS

JPEG = 7
RESOLUTION_UNITS = {2: "inch", 3: "cm"}

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # what it would print, we say ourselves


class TiffImage(Image):
    """Levels are pages of one file."""

    def __init__(self, facts: Facts, pages: list[TiffPage], codings: list[Coding], tiff: TiffFile, file: int) -> None:
        super().__init__(facts)
        self._tiff, self._file = tiff, file
        self.is_plain = all(page.compression == JPEG and 0 not in page.databytecounts for page in pages)
        """Whether every tile is there and a JPEG, so that any reader must see the same."""
        cache = SegmentCache(TILE_CACHE_BYTES if pages[0].is_tiled else STRIP_CACHE_BYTES)
        self._readers = [
            RawRows(page, file, coding) if is_raw_rows(page) else Segments(page, level, file, coding, cache)
            for level, (page, coding) in enumerate(zip(pages, codings, strict=True))
        ]

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        try:
            self._readers[level].fill(out, x, y)
        except FAULTS as error:
            raise region_error(self.name, level, x, y, out, error) from error

    def _let_go(self) -> None:
        self._tiff.close()
        os.close(self._file)


def open_tiff(path: Path, user_mpp: float | None) -> TiffImage:
    """Open a TIFF of any kind that tifffile reads."""
    with ExitStack() as unless_opened:
        try:
            tiff = unless_opened.enter_context(TiffFile(path))
            file = os.open(path, os.O_RDONLY)
            unless_opened.callback(os.close, file)
            image = _opened(tiff, file, path.name, user_mpp)
        except InputError:
            raise
        except FAULTS as error:
            reason = fault_reason(error)
            raise InputError(f"{path.name}: not a readable TIFF ({reason}); copy or export it again") from error
        unless_opened.pop_all()
        return image


def open_aperio(path: Path, user_mpp: float | None) -> TiffImage | None:
    """An Aperio slide of plain JPEG tiles, whose pixels are OpenSlide's in a quarter of the time; else None."""
    try:
        image = open_tiff(path, user_mpp)
    except InputError:
        return None  # OpenSlide knows better, or says why not
    if image.is_plain:
        image.format = "aperio"
        return image
    image.close()
    return None


def _opened(tiff: TiffFile, file: int, name: str, user_mpp: float | None) -> TiffImage:
    (base, *smaller), decisions = pyramid(tiff, name)
    check_size(name, base.imagewidth, base.imagelength)
    codings = [coding_of(base, name)]
    check_segments(base, name)
    pages = [base]
    for page in smaller:
        try:
            check_segments(page, name)
            codings.append(coding_of(page, name))
            pages.append(page)
        except InputError as error:
            decisions.append(f"level of {page.imagewidth}×{page.imagelength} px left out ({error})")
    stated, power, lines = _statements(base, name)
    mpp, doubts = settled(stated, user_mpp, power)
    levels = levels_of([(page.imagewidth, page.imagelength) for page in pages])
    warnings = (
        *decisions,
        *codings[0].decisions(base.bitspersample),
        *_layout_warnings(base, levels, os.fstat(file).st_size),
        *lines,
        *doubts,
    )
    kind = "ome-tiff" if is_ome(base.description) else "generic-tiff"
    facts = Facts(name, kind, levels, mpp, whole(levels), warnings, _properties(tiff, base, power))
    return TiffImage(facts, pages, codings, tiff, file)


def _layout_warnings(base: TiffPage, levels: tuple[Level, ...], file_bytes: int) -> list[str]:
    out = []
    kind = "tiles" if base.is_tiled else "strips"
    count, empty, beyond = missing_segments(base, file_bytes)
    if empty:
        out.append(f"{empty:,} of {count:,} {kind} are empty in the file and read as white")
    if beyond:
        out.append(f"{beyond:,} of {count:,} {kind} are cut off; the file is not whole: copy it again")
    if area(base) > MAX_IMAGE_PIXELS and (len(levels) == 1 or not base.is_tiled):
        what = "one level" if base.is_tiled else "strips instead of tiles"
        out.append(f"large and stored with {what}: slow to read; vips tiffsave --tile --pyramid makes it quick")
    orientation = base.tags.valueof(274, default=1)
    if orientation != 1:
        out.append(f"orientation {orientation} is not applied; the pixels are taken as stored")
    return out


def _properties(tiff: TiffFile, base: TiffPage, power: str | None) -> dict[str, Any]:
    compression = getattr(base.compression, "name", str(base.compression)).lower()
    out: dict[str, Any] = {
        "compression": compression,
        "bits": int(base.bitspersample),
        "channels": int(base.samplesperpixel),
        "tile" if base.is_tiled else "strip": [int(side) for side in segment_size(base)],
        "bigtiff": bool(tiff.is_bigtiff),
    }
    if base.software:
        out["software"] = str(base.software)[:200]
    if power:
        out["objective power"] = power
    return out


def _statements(base: TiffPage, name: str) -> tuple[list[Stated], str | None, list[str]]:
    """What a page says of its resolution, the most trusted first; the objective's power; what could not be read."""
    stated: list[Stated] = []
    power, lines = None, []
    text = base.description
    if is_ome(text):
        try:
            stated, power = parse_ome(text, name)
        except InputError as error:
            lines.append(f"{str(error).removeprefix(name + ': ')}; its µm per pixel are not known")
    elif is_aperio(base):
        fields = dict(part.partition("=")[::2] for part in text.split("|")[1:])
        values = {key.strip(): value.strip() for key, value in fields.items()}
        power = values.get("AppMag")
        if "MPP" in values:
            stated = [Stated(number(values["MPP"]), number(values["MPP"]), "metadata", "Aperio MPP")]
    elif text.startswith("ImageJ="):
        stated = _imagej(base, text)
    return [*stated, *_resolution_tag(base)], power, lines


def _imagej(base: TiffPage, text: str) -> list[Stated]:
    """ImageJ writes pixels per unit as resolution, and the unit into the description."""
    fields = dict(line.partition("=")[::2] for line in text.splitlines())
    microns, resolution = UNITS.get(fields.get("unit", "").strip()), _resolution(base)
    if microns is None or resolution is None:
        return []
    return [Stated(microns / resolution[0], microns / resolution[1], "metadata", "ImageJ resolution")]


def _resolution_tag(base: TiffPage) -> list[Stated]:
    unit, resolution = RESOLUTION_UNITS.get(int(base.tags.valueof(296, default=2))), _resolution(base)
    if resolution is None or unit is None:
        return []
    x, y = (MICRONS[unit] / value for value in resolution)
    return [Stated(x, y, "tiff-tag", f"XResolution of {resolution[0]:.4g} px per {unit}")]


def _resolution(base: TiffPage) -> tuple[float, float] | None:
    """Pixels per unit along x and y, where both are above 0."""
    values = []
    for tag in (282, 283):
        value = base.tags.valueof(tag)
        if not isinstance(value, tuple) or len(value) != 2 or not value[0] or not value[1]:
            return None
        values.append(value[0] / value[1])
    return values[0], values[1]
