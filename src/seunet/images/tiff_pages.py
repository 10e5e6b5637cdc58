"""Which pages of a TIFF are the levels of one image, and how their samples are coded."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from tifffile import TiffFile, TiffFileError, TiffPage, TiffPages

from seunet.errors import InputError
from seunet.images.pillow_codec import DECODE_FAULTS
from seunet.images.to_rgb import Alpha, Coding
from seunet.limits import MAX_PAGES, MAX_SEGMENT_BYTES

FAULTS: tuple[type[Exception], ...] = (*DECODE_FAULTS, TiffFileError, AssertionError)
"""What tifffile and its codecs raise on broken files, found with mutants (benchmarks/reliability/inference.py)."""

WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, YCBCR = 0, 1, 2, 3, 6
JPEG_COMPRESSIONS = (6, 7)
PHOTOMETRIC_NAMES = {4: "transparency mask", 5: "CMYK", 8: "CIE L*a*b*", 9: "ICC L*a*b*", 32803: "colour filter array"}


def pyramid(tiff: TiffFile, name: str) -> tuple[list[TiffPage], list[str]]:
    """The levels: the largest page, then its sub-images or, without any, the pages marked as smaller copies of it.

    Aperio marks its label and not its levels; there the levels are those in tiles.  What had to be decided, in lines.
    """
    top, decisions = _readable(tiff.pages, name)
    usable = [page for page in top if _has_size(page)]
    if not usable:
        raise InputError(f"{name}: holds no image; copy or export it again")
    base = max(usable, key=area)  # the first of the largest
    if base is not top[0]:
        decisions.append(f"page {top.index(base) + 1} is the largest and is read as the image")
    equals = [page for page in usable if page.shape == base.shape]
    if len(equals) > 1 and base.samplesperpixel == 1:
        raise InputError(
            f"{name}: {len(equals)} grey pages of one size (channels or focal planes); save one RGB image as TIFF"
        )
    if len(equals) > 1:
        decisions.append(f"{len(equals)} pages of the full size; the first is read")
    if base.subifds and base.pages is not None:
        below, faults = _readable(base.pages, name)
        smaller = [page for page in below if _has_size(page)]
        decisions += faults
    elif is_aperio(base):
        smaller = [page for page in usable if page.is_tiled]
    else:
        smaller = [page for page in usable if page.is_reduced]
    return [base, *_levels_below(base, smaller)], decisions


def _has_size(page: TiffPage) -> bool:
    """Whether its sizes are numbers that a size can be; a broken entry can be a fraction or a list."""
    sizes = (page.imagewidth, page.imagelength, page.samplesperpixel, page.bitspersample)
    others = (page.tilewidth, page.tilelength) if page.is_tiled else (page.rowsperstrip,)
    return all(isinstance(value, int) and value > 0 for value in sizes) and all(
        isinstance(value, int) and value >= 0 for value in others
    )


def is_aperio(page: TiffPage) -> bool:
    """Whether an Aperio scanner, or its library, wrote the page."""
    return page.description.startswith("Aperio")


def coding_of(page: TiffPage, name: str) -> Coding:
    """How the samples of a page become RGB; an InputError for what is no picture in grey or colour."""
    if page.imagedepth != 1 or page.tiledepth > 1:
        raise InputError(f"{name}: is a volume; save the plane that is meant as an RGB TIFF")
    bits, photometric, samples = page.bitspersample, int(page.photometric), page.samplesperpixel
    if page.dtype is None or page.dtype.kind != "u" or bits not in (8, 16) or page.dtype.itemsize * 8 != bits:
        kind = {"f": "floating-point", "i": "signed"}.get(page.dtype.kind if page.dtype is not None else "", "")
        raise InputError(f"{name}: {bits}-bit {kind + ' ' if kind else ''}samples; convert it to 8-bit RGB first")
    if photometric in PHOTOMETRIC_NAMES:
        raise InputError(f"{name}: colour mode {PHOTOMETRIC_NAMES[photometric]}; convert it to 8-bit RGB first")
    alpha = _alpha(page)
    if photometric == PALETTE and samples == 1 and page.colormap is not None:
        table = (np.moveaxis(page.colormap, 0, -1) >> 8).astype(np.uint8)
        return Coding(1, palette=np.ascontiguousarray(table))
    if photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO) and samples in (1, 2):
        return Coding(1, alpha=alpha, white_is_zero=photometric == WHITE_IS_ZERO)
    in_colour = photometric == RGB or (photometric == BLACK_IS_ZERO and samples == 3)
    if samples in (3, 4) and (in_colour or (photometric == YCBCR and page.compression in JPEG_COMPRESSIONS)):
        return Coding(3, alpha=alpha)
    raise InputError(f"{name}: {samples} channels of colour mode {photometric}; convert it to 8-bit RGB first")


def check_segments(page: TiffPage, name: str) -> None:
    """Refuse a page whose pieces are too large to be decoded one by one."""
    width_px, height_px = segment_size(page)
    stored = 1 if is_raw_rows(page) else height_px
    if width_px * stored * page.samplesperpixel * (page.bitspersample // 8) > MAX_SEGMENT_BYTES:
        kind = "tiles" if page.is_tiled else "strips"
        raise InputError(
            f"{name}: stored in {kind} of {width_px}×{height_px} px, which cannot be read in parts; "
            "save it as a TIFF with tiles of 512 px, e.g. vips tiffsave --tile --pyramid"
        )


def segment_size(page: TiffPage) -> tuple[int, int]:
    """(width, height) of a tile or strip in pixels."""
    if page.is_tiled:
        return page.tilewidth, page.tilelength
    return page.imagewidth, max(1, min(page.rowsperstrip or page.imagelength, page.imagelength))


def is_raw_rows(page: TiffPage) -> bool:
    """Whether rows lie in the file as they are, so that any part of them can be read alone."""
    return not page.is_tiled and page.compression == 1 and page.planarconfig == 1 and page.fillorder == 1


def area(page: TiffPage) -> int:
    return page.imagewidth * page.imagelength


def missing_segments(page: TiffPage, file_bytes: int) -> tuple[int, int, int]:
    """(how many tiles or strips there must be, how many are empty by the file's word, how many lie beyond its end)."""
    width_px, height_px = segment_size(page)
    count = math.ceil(page.imagewidth / width_px) * math.ceil(page.imagelength / height_px)
    count *= page.samplesperpixel if page.planarconfig == 2 else 1
    pairs = list(zip(page.dataoffsets[:count], page.databytecounts[:count], strict=False))
    empty = sum(not size for _, size in pairs)
    beyond = sum(bool(size) and offset + size > file_bytes for offset, size in pairs)
    return count, empty, beyond + count - len(pairs)


def _readable(pages: TiffPages, name: str) -> tuple[list[TiffPage], list[str]]:
    """The pages until one cannot be read; the first must."""
    out: list[TiffPage] = []
    try:
        out.extend(_first_pages(pages))
    except FAULTS as error:
        if not out:
            raise InputError(f"{name}: its first page cannot be read ({error}); copy or export it again") from error
        return out, [f"page {len(out) + 1} cannot be read and is left out, with those after it"]
    return out, []


def _first_pages(pages: TiffPages) -> Iterator[TiffPage]:
    for index in range(MAX_PAGES):
        try:
            page = pages[index]
        except IndexError:
            return
        yield page.aspage()


def _levels_below(base: TiffPage, pages: list[TiffPage]) -> list[TiffPage]:
    kept = [base]
    for page in sorted(pages, key=area, reverse=True):
        if _same_picture(base, page) and page.imagewidth < kept[-1].imagewidth:
            kept.append(page)
    return kept[1:]


def _same_picture(base: TiffPage, page: TiffPage) -> bool:
    """Whether a page can be a smaller copy: the same samples, and the same shape but for rounding."""
    if (page.samplesperpixel, page.dtype, page.photometric) != (base.samplesperpixel, base.dtype, base.photometric):
        return False
    slope = base.imagelength / base.imagewidth
    rounding = 1 + slope + 0.005 * page.imagelength
    return abs(page.imagelength - slope * page.imagewidth) <= rounding


def _alpha(page: TiffPage) -> Alpha:
    colours = 1 if page.samplesperpixel <= 2 else 3
    if page.samplesperpixel == colours:
        return "none"
    kinds: dict[int, Alpha] = {1: "premultiplied", 2: "plain"}
    return kinds.get(int(page.extrasamples[0]) if page.extrasamples else 0, "unknown")
