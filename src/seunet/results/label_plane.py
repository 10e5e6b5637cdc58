"""A plane of bytes on disk that is written in blocks and read in bands: the memory of a slide that does not fit ours.

Plain reads and writes rather than a memory map: mapped pages count as the process's memory, and a slide has gigabytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from seunet.errors import StorageError

Bytes2d = NDArray[np.uint8]


class Labels(Protocol):
    """A plane of class codes that can be read in blocks."""

    height_px: int
    width_px: int

    def read(self, y: int, x: int, height_px: int, width_px: int) -> Bytes2d: ...


def read_only(block: Bytes2d) -> Bytes2d:
    """The same bytes as a block that is whole and not written to: one type for compiled loops, wherever it is from."""
    view = np.ascontiguousarray(block).view()
    view.flags.writeable = False
    return view


class ArrayPlane:
    """A plane that fits in memory, to be read from."""

    def __init__(self, codes: Bytes2d) -> None:
        self.codes = codes
        self.height_px, self.width_px = codes.shape

    def read(self, y: int, x: int, height_px: int, width_px: int) -> Bytes2d:
        """The block at row `y`, column `x`, cut to the plane."""
        return self.codes[y : y + height_px, x : x + width_px]


class OnSlide:
    """A plane seen on the slide's own pixels: each has the code of the working pixel that its centre lies in.

    An outline of the plane, drawn on the slide and painted there, has the same pixels.
    """

    def __init__(self, plane: Labels, size: tuple[int, int], scale: float) -> None:
        """`size`: height and width of the slide; `scale`: its pixels along the side of a working pixel."""
        self._plane = plane
        self.height_px, self.width_px = size
        self.rows, self.columns = (
            np.minimum((np.arange(count) + 0.5) / scale, length - 1).astype(np.int64)
            for count, length in zip(size, (plane.height_px, plane.width_px), strict=True)
        )
        """The working row of each row, and the working column of each column."""

    def read(self, y: int, x: int, height_px: int, width_px: int) -> Bytes2d:
        """The block at row `y`, column `x`, cut to the slide; row by row, so that only what is wanted is held."""
        rows, columns = self.rows[y : y + height_px], self.columns[x : x + width_px]
        left, width = int(columns[0]), int(columns[-1] - columns[0]) + 1
        block = np.empty((len(rows), len(columns)), dtype=np.uint8)
        for number, row in enumerate(rows.tolist()):
            same = number > 0 and row == rows[number - 1]
            block[number] = block[number - 1] if same else self._plane.read(row, left, 1, width)[0, columns - left]
        return block


class Plane:
    """`height_px` × `width_px` bytes in a file, row after row; what was never written is 0."""

    def __init__(self, path: Path, height_px: int, width_px: int) -> None:
        self.path, self.height_px, self.width_px = path, height_px, width_px
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if os.fstat(self._file).st_size != height_px * width_px:
                os.ftruncate(self._file, height_px * width_px)
        except OSError as error:
            raise self._fault(error) from error

    @property
    def shape(self) -> tuple[int, int]:
        return self.height_px, self.width_px

    def write(self, y: int, x: int, block: Bytes2d) -> None:
        """Put `block` with its top left pixel at row `y`, column `x`; it must lie within the plane."""
        rows = np.ascontiguousarray(block)
        height, width = rows.shape
        if y < 0 or x < 0 or y + height > self.height_px or x + width > self.width_px:
            raise IndexError(f"block {height}×{width} at row {y}, column {x} leaves the plane {self.shape}")
        try:
            if width == self.width_px:
                self._put(y * width, rows.data.cast("B"))
            else:
                for number, row in enumerate(rows):
                    self._put((y + number) * self.width_px + x, row.data)
        except OSError as error:
            raise self._fault(error) from error

    def read(self, y: int, x: int, height_px: int, width_px: int) -> Bytes2d:
        """The block at row `y`, column `x`, cut to the plane."""
        height_px, width_px = min(height_px, self.height_px - y), min(width_px, self.width_px - x)
        try:
            if width_px == self.width_px:
                data = self._get(y * width_px, height_px * width_px)
            else:
                starts = (row * self.width_px + x for row in range(y, y + height_px))
                data = b"".join(self._get(start, width_px) for start in starts)
        except OSError as error:
            raise self._fault(error) from error
        return np.frombuffer(data, dtype=np.uint8).reshape(height_px, width_px)

    def sync(self) -> None:
        """Return when everything written is on the disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._fault(error) from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, offset: int, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._file, data, offset)
            data, offset = data[written:], offset + written

    def _get(self, offset: int, count: int) -> bytes:
        parts = []
        while count:
            part = os.pread(self._file, count, offset)
            if not part:
                raise OSError(0, "the file ends too early")
            parts.append(part)
            offset, count = offset + len(part), count - len(part)
        return b"".join(parts)

    def _fault(self, error: OSError) -> StorageError:
        return StorageError(f"{self.path}: cannot be used ({error.strerror}); free space or choose another place")
