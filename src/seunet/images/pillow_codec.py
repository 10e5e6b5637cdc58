"""Whole PNG, JPEG and TIFF files ↔ pixels, for data sets and results; images to segment are read in regions instead.

A file is read once: the bytes that are hashed are the bytes that are decoded.  Headers are checked before a
pixel is allocated, and what would change silently (16 bits cut to 8, transparency, CMYK) is refused by name.
"""

from __future__ import annotations

import hashlib
import io
import struct
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from seunet.errors import InputError
from seunet.limits import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS
from seunet.storage.files import read_limited

Uint8Array = NDArray[np.uint8]
IntArray = NDArray[Any]

SUFFIXES = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
FORMATS = ("PNG", "TIFF", "JPEG")
COMPRESS_LEVEL = 4

_SIGNATURE, _RGB, _UP = b"\x89PNG\r\n\x1a\n", 2, 2
"""Of a PNG file: how it begins, the code of RGB, the code of a row that is its difference from the row above."""

Image.MAX_IMAGE_PIXELS = MAX_IMAGE_PIXELS  # Pillow warns beyond it and refuses beyond twice it; we refuse beyond it

# What Pillow raises on broken files, found by decoding mutants (benchmarks/reliability/data.py).
DECODE_FAULTS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


class Decoded(NamedTuple):
    """Pixels, and a sentence for each thing that had to be decided to get them."""

    pixels: IntArray
    decisions: list[str]


def read_image(path: Path) -> bytes:
    """The bytes of an image file."""
    return read_limited(path, MAX_IMAGE_BYTES)


def pixel_sha256(pixels: IntArray) -> str:
    """Hash of shape, type and pixels: the same for the same image in two file formats."""
    digest = hashlib.sha256(f"{pixels.dtype.str} {pixels.shape} ".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def decode_rgb(data: bytes, name: str) -> Decoded:
    """An 8-bit RGB image [height, width, 3] from PNG, TIFF or JPEG bytes."""
    with _opened(data, name) as image:
        depth = stored_bits(image)
        if depth > 8:
            raise InputError(f"{name}: {depth} bits per channel; convert it to 8-bit RGB first")
        if image.mode == "RGB":
            return Decoded(_pixels(image, name), [])
        if image.mode == "RGBA":
            pixels = _pixels(image, name)
            if (pixels[..., 3] != 255).any():
                raise InputError(f"{name}: has transparent pixels; flatten it on white and save it as RGB")
            return Decoded(np.ascontiguousarray(pixels[..., :3]), ["opaque alpha channel dropped"])
        if image.mode == "P" and "transparency" not in image.info:
            _pixels(image, name)
            return Decoded(np.asarray(image.convert("RGB")), ["palette expanded to RGB"])
        raise InputError(f"{name}: colour mode {mode_name(image.mode)}; an H&E image is 8-bit RGB: convert it first")


def decode_codes(data: bytes, name: str) -> Decoded:
    """A mask of whole numbers [height, width] from PNG or TIFF bytes; of a palette image, the indices."""
    with _opened(data, name) as image:
        if image.format == "JPEG":
            raise InputError(f"{name}: a JPEG cannot hold a mask (its codes blur); save the mask as PNG")
        if image.mode == "1":
            return Decoded(_pixels(image, name).astype(np.uint8), ["1-bit mask read as codes 0 and 1"])
        if image.mode == "P":
            return Decoded(_pixels(image, name), [])
        if image.mode in ("L", "I;16", "I;16B", "I;16L", "I"):
            pixels = _pixels(image, name)
            if pixels.min(initial=0) < 0:
                raise InputError(f"{name}: code {pixels.min()} is negative; codes are 0 or more")
            return Decoded(pixels, [])
        if image.mode in ("RGB", "RGBA"):
            pixels = _pixels(image, name)
            if image.mode == "RGB" and stored_bits(image) == 8 and (pixels == pixels[..., :1]).all():
                return Decoded(np.ascontiguousarray(pixels[..., 0]), ["three equal channels read as one"])
        raise InputError(f"{name}: colour mode {mode_name(image.mode)}; a mask has one channel of whole-number codes")


def encode_png(pixels: IntArray, palette: Sequence[Sequence[int]] | None = None) -> bytes:
    """PNG bytes of RGB, 8- or 16-bit pixels; with a palette, codes stay the values and show in colour."""
    image = Image.fromarray(pixels)
    if palette is not None:
        image.putpalette([channel for colour in palette for channel in colour])
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=COMPRESS_LEVEL)
    return out.getvalue()


def encode_png_quickly(pixels: Uint8Array) -> bytes:
    """PNG bytes of RGB pixels in a third of the time: rows as differences from the one above, packed by libdeflate.

    Pillow tries five kinds of differences for each row and packs by zlib; for pictures of tissue that saves no bytes.
    """
    from imagecodecs import deflate_encode  # only who writes pictures needs it

    height, width, channels = pixels.shape
    rows = np.ascontiguousarray(pixels).reshape(height, width * channels)
    packed = np.empty((height, 1 + width * channels), dtype=np.uint8)
    packed[:, 0] = _UP
    packed[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=packed[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", bytes(deflate_encode(packed.tobytes(), level=1))), (b"IEND", b"")
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
        for kind, data in chunks
    )


def _opened(data: bytes, name: str) -> Image.Image:
    if data[:4] == b"PK\x03\x04":
        raise InputError(f"{name}: is a zip archive; extract it first")
    image, frames = open_raster(io.BytesIO(data), name)
    if frames > 1:
        raise InputError(f"{name}: holds {frames} pages; save the one that is meant as a file of its own")
    return image


def open_raster(file: BinaryIO, name: str, formats: Sequence[str] = FORMATS) -> tuple[Image.Image, int]:
    """The checked header of an image that is not too large, and its number of pages; no pixel is decoded yet."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of what is checked, and refused, below
            image = Image.open(file, formats=tuple(formats))
            frames = getattr(image, "n_frames", 1)
    except Image.DecompressionBombError as error:
        raise InputError(f"{name}: more than {MAX_IMAGE_PIXELS:,} pixels; cut it into smaller images") from error
    except DECODE_FAULTS as error:
        kinds = f"{', '.join(formats[:-1])} or {formats[-1]}"
        raise InputError(f"{name}: not a readable {kinds} ({fault_reason(error)}); export it again") from error
    width, height = image.size
    if width * height > MAX_IMAGE_PIXELS:
        raise InputError(
            f"{name}: {width}×{height} is more than {MAX_IMAGE_PIXELS:,} pixels; cut it into smaller images"
        )
    return image, frames


def load_raster(image: Image.Image, name: str) -> None:
    """Decode the pixels of an open image."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.load()
    except DECODE_FAULTS as error:
        raise InputError(f"{name}: broken or cut short ({fault_reason(error)}); copy or download it again") from error


def _pixels(image: Image.Image, name: str) -> IntArray:
    load_raster(image, name)
    return np.array(image)


def stored_bits(image: Image.Image) -> int:
    """Bits per channel as stored: Pillow cuts 16-bit RGB to 8 without a word, but its raw mode tells."""
    tile = getattr(image, "tile", None)
    raw = str(tile[0]) if tile else ""
    if ";16" in raw or image.mode.startswith("I"):
        return 16
    return 32 if image.mode == "F" else 8


def mode_name(mode: str) -> str:
    """A mode of Pillow in words."""
    names = {"L": "grey", "LA": "grey with alpha", "1": "1-bit", "F": "32-bit float", "I": "32-bit", "P": "palette"}
    return names.get(mode, mode)


def fault_reason(error: BaseException) -> str:
    """What a decoder said, short and on one line; its kind where that is all there is."""
    text = " ".join(str(error).split())
    return text[:120] if text and "0x" not in text else type(error).__name__
