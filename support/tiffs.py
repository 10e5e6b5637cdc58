"""Small TIFF files of every kind that is read, and damaged ones."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from support.datasets import he_pixels
from support.mutants import image_seeds, mutate

APERIO = "Aperio Image Library v11.2.1\r\n{side}x{side} (64x64) JPEG/RGB Q=90|AppMag = 20|MPP = {mpp}|Filtered = 5"


def halves(pixels: NDArray[Any], count: int) -> list[NDArray[Any]]:
    """The image and `count` smaller ones, every second pixel of the one before."""
    out = [pixels]
    for _ in range(count):
        out.append(np.ascontiguousarray(out[-1][::2, ::2]))
    return out


def tiff_bytes(levels: list[NDArray[Any]], subifds: bool = False, ome: bool = False, **options: Any) -> bytes:
    """A TIFF whose levels are reduced pages, or sub-images of the first page."""
    file = io.BytesIO()
    settings: dict[str, Any] = {"photometric": "rgb", "tile": (64, 64)} | options
    big, metadata = settings.pop("bigtiff", False), settings.pop("metadata", None)
    with tifffile.TiffWriter(file, bigtiff=big, ome=ome) as writer:
        first, *others = levels
        below = len(others) if subifds else 0
        writer.write(first, subifds=below or None, metadata=metadata if ome else None, **settings)
        settings = {key: settings[key] for key in settings if key not in ("description", "resolution")}
        for level in others:
            writer.write(level, subfiletype=1, metadata=None, **settings)
    return file.getvalue()


def aperio_bytes(levels: list[NDArray[Any]], compression: str = "jpeg", mpp: str = "0.4990") -> bytes:
    """A TIFF that OpenSlide takes for an Aperio slide."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        for level in levels:
            text = APERIO.format(side=len(level), mpp=mpp)
            writer.write(
                level,
                photometric="rgb",
                tile=(64, 64),
                compression=compression,
                compressionargs={"level": 90},
                description=text,
                metadata=None,
            )
    return file.getvalue()


def slide_seeds() -> dict[str, bytes]:
    """One small valid file of each kind that is read in parts."""
    rgb = he_pixels(160, 0)
    grey = np.ascontiguousarray(rgb[..., 0])
    alpha = np.concatenate([rgb, np.full_like(rgb[..., :1], 200)], axis=-1)
    levels = halves(rgb, 2)
    mpp = {"PhysicalSizeX": 0.25, "PhysicalSizeY": 0.25, "axes": "YXS"}
    return {
        "pyramid jpeg": tiff_bytes(levels, compression="jpeg"),
        "pyramid deflate": tiff_bytes(levels, compression="deflate", predictor=True),
        "ome subifds": tiff_bytes(levels, subifds=True, ome=True, compression="lzw", metadata=mpp),
        "bigtiff": tiff_bytes(levels, bigtiff=True, compression="deflate"),
        "planar": tiff_bytes([np.moveaxis(rgb, -1, 0)], planarconfig="separate", compression="deflate"),
        "grey": tiff_bytes([grey], photometric="minisblack"),
        "rgba": tiff_bytes([alpha], extrasamples=["unassalpha"], compression="deflate"),
        "16 bits": tiff_bytes([rgb.astype(np.uint16) * 257], compression="lzw"),
        "strips": tiff_bytes([rgb], tile=None, rowsperstrip=16, compression="deflate"),
        "one strip": tiff_bytes([rgb], tile=None, rowsperstrip=160),
        "webp": tiff_bytes([rgb], compression="webp"),
        "jpeg 2000": tiff_bytes([rgb], compression="jpeg2000"),
        "aperio jpeg": aperio_bytes(levels),
        "aperio jpeg 2000": aperio_bytes(levels, "aperio_jp2000_rgb"),
    }


EXTREMES = (0, 1, 2, 7, 255, 65_535, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 1_000_003)


def change_tag(data: bytes, random: np.random.Generator) -> bytes:
    """A classic TIFF with one field of one entry of its first directory set to something extreme."""
    if data[:4] != b"II*\x00":
        return mutate(data, random)
    out = bytearray(data)
    (start,) = struct.unpack_from("<I", out, 4)
    (count,) = struct.unpack_from("<H", out, start)
    entry = start + 2 + 12 * int(random.integers(0, count))
    value = EXTREMES[int(random.integers(0, len(EXTREMES)))]
    field = int(random.integers(0, 4))
    if field < 2:
        struct.pack_into("<I", out, entry + 8, value)
    elif field == 2:
        struct.pack_into("<I", out, entry + 4, value)
    else:
        struct.pack_into("<H", out, entry + 2, int(random.integers(0, 20)))
    return bytes(out)


def slide_mutants(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(kind, damaged file): bytes anywhere and entries of the directory by turns."""
    random = np.random.default_rng(seed)
    seeds = list((slide_seeds() | {key: image_seeds()[key] for key in ("png", "jpeg", "png rgba")}).items())
    for number in range(count):
        name, data = seeds[number % len(seeds)]
        turn = number // len(seeds)
        yield name, (change_tag if turn % 2 else mutate)(data, random)


def write(path: Path, data: bytes) -> Path:
    """The file at `path`."""
    path.write_bytes(data)
    return path


def spoil_tile(data: bytes, page: int, tile: int, kind: str = "noise") -> bytes:
    """The file with one tile of a page overwritten, or said to be empty."""
    with tifffile.TiffFile(io.BytesIO(data)) as tiff:
        chosen = tiff.pages[page].aspage()
        offset, size = chosen.dataoffsets[tile], chosen.databytecounts[tile]
        tag = chosen.tags["TileByteCounts"]
        place, width = tag.valueoffset + tile * (tag.valuebytecount // tag.count), tag.valuebytecount // tag.count
    out = bytearray(data)
    if kind == "noise":
        out[offset : offset + size] = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8).tobytes()
    else:
        out[place : place + width] = bytes(width)
    return bytes(out)
