"""Regions of a TIFF page from the tiles or strips they touch, in bounded memory.

`fill` puts the pixels from (x, y), which must lie within the page, into an array and raises what the decoder raises.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from tifffile import TiffPage

from seunet.images.image import RgbArray
from seunet.images.tiff_pages import segment_size
from seunet.images.to_rgb import Coding, to_rgb
from seunet.limits import MAX_SEGMENT_BYTES

TILE_CACHE_BYTES = 64 << 20
STRIP_CACHE_BYTES = 256 << 20
"""Strips run across the whole image: a row of regions needs the same ones again and again."""


class SegmentCache:
    """Decoded tiles and strips, the least recently used let go of first."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._held_bytes = limit_bytes, 0
        self._held: OrderedDict[tuple[int, int], RgbArray] = OrderedDict()
        self._lock = threading.Lock()

    def fetch(self, key: tuple[int, int], decode: Callable[[], RgbArray]) -> RgbArray:
        """What is held under `key`, decoded if it is not; two threads may decode the same one, to the same end."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        pixels = decode()
        with self._lock:
            if key not in self._held:
                self._held[key] = pixels
                self._held_bytes += pixels.nbytes
            while self._held_bytes > self._limit_bytes and len(self._held) > 1:
                self._held_bytes -= self._held.popitem(last=False)[1].nbytes
        return pixels


class Segments:
    """Compressed strips or tiles of any kind: each that is touched is decoded, and kept for the next region."""

    def __init__(self, page: TiffPage, level: int, file: int, coding: Coding, cache: SegmentCache) -> None:
        self._page, self._level, self._file, self._coding, self._cache = page, level, file, coding, cache
        self._width_px, self._height_px = segment_size(page)
        self._columns = -(-page.imagewidth // self._width_px)
        self._rows = -(-page.imagelength // self._height_px)
        self._planes = page.samplesperpixel if page.planarconfig == 2 else 1

    def fill(self, out: RgbArray, x: int, y: int) -> None:
        height_px, width_px = out.shape[:2]
        for row in range(y // self._height_px, (y + height_px - 1) // self._height_px + 1):
            for column in range(x // self._width_px, (x + width_px - 1) // self._width_px + 1):
                self._paste(out, x, y, row, column)

    def _paste(self, out: RgbArray, x: int, y: int, row: int, column: int) -> None:
        """Copy what a segment and the region at (x, y) have in common."""
        number = row * self._columns + column
        pixels = self._cache.fetch((self._level, number), lambda: self._decoded(row, column))
        left, top = column * self._width_px, row * self._height_px
        x0, y0 = max(x, left), max(y, top)
        x1 = min(x + out.shape[1], left + self._width_px, self._page.imagewidth)
        y1 = min(y + out.shape[0], top + self._height_px, self._page.imagelength)
        out[y0 - y : y1 - y, x0 - x : x1 - x] = pixels[y0 - top : y1 - top, x0 - left : x1 - left]

    def _decoded(self, row: int, column: int) -> RgbArray:
        number, area = row * self._columns + column, self._rows * self._columns
        planes = [self._samples(number + plane * area) for plane in range(self._planes)]
        if any(plane is None for plane in planes):
            return np.full((self._height_px, self._width_px, 3), 255, dtype=np.uint8)
        samples = np.concatenate([plane for plane in planes if plane is not None], axis=-1)
        needed_rows = min(self._height_px, self._page.imagelength - row * self._height_px)
        needed_columns = min(self._width_px, self._page.imagewidth - column * self._width_px)
        if samples.shape[0] < needed_rows or samples.shape[1] < needed_columns:
            raise ValueError(f"a tile of {samples.shape[1]}×{samples.shape[0]} px where more must be")
        return to_rgb(samples, self._coding)

    def _samples(self, number: int) -> np.ndarray | None:
        """[height, width, channels] of one segment; None if the file says that nothing was stored for it."""
        page = self._page
        if number >= min(len(page.dataoffsets), len(page.databytecounts)):
            raise ValueError(f"tile {number} is not in the file")
        size = page.databytecounts[number]
        if size == 0:
            return None
        if size > MAX_SEGMENT_BYTES:
            raise ValueError(f"tile {number} claims {size:,} bytes")
        data = read_exactly(self._file, page.dataoffsets[number], size)
        decoded = page.decode(data, number, jpegtables=page.jpegtables, jpegheader=page.jpegheader)[0]
        if decoded is None or decoded.dtype != page.dtype:
            raise ValueError(f"tile {number} is of another type than its page")
        samples: np.ndarray = decoded[0]
        return samples


class RawRows:
    """Uncompressed strips: the bytes of a region are read and nothing else, however long the strip."""

    def __init__(self, page: TiffPage, file: int, coding: Coding) -> None:
        assert page.dtype is not None
        self._page, self._file, self._coding = page, file, coding
        self._rows_per_strip = segment_size(page)[1]
        self._type = page.dtype.newbyteorder(page.parent.byteorder)
        self._pixel_bytes = page.samplesperpixel * page.dtype.itemsize

    def fill(self, out: RgbArray, x: int, y: int) -> None:
        height_px, width_px = out.shape[:2]
        rows = b"".join(self._row(x, row, width_px) for row in range(y, y + height_px))
        samples = np.frombuffer(rows, self._type).astype(self._type.newbyteorder("="), copy=False)
        out[:] = to_rgb(samples.reshape(height_px, width_px, -1), self._coding)

    def _row(self, x: int, y: int, width_px: int) -> bytes:
        strip, within = divmod(y, self._rows_per_strip)
        if strip >= len(self._page.dataoffsets):
            raise ValueError(f"strip {strip} is not in the file")
        start = self._page.dataoffsets[strip] + (within * self._page.imagewidth + x) * self._pixel_bytes
        return read_exactly(self._file, start, width_px * self._pixel_bytes)


def read_exactly(file: int, offset: int, count: int) -> bytes:
    """`count` bytes from `offset`; an error if the file ends before."""
    data = os.pread(file, count, offset)
    while len(data) < count:
        more = os.pread(file, count - len(data), offset + len(data))
        if not more:
            raise EOFError("the file ends too early")
        data += more
    return data
