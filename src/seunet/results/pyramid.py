"""A plane at half its size, again and again, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seunet.results.label_plane import Labels, Plane

BAND_PIXELS: Final = 1 << 24

Bytes2d = NDArray[np.uint8]
Halve = Callable[[Bytes2d], Bytes2d]


def halved_by_majority(codes: Bytes2d) -> Bytes2d:
    """The most frequent of each 2 × 2 codes; among equally frequent ones that of the upper left pixel."""
    a, b, c, d = _quarters(codes)
    pair = np.where((b == c) | (b == d), b, np.where(c == d, c, a))
    return np.where((a == b) | (a == c) | (a == d), a, pair)


def halved_by_mean(values: Bytes2d) -> Bytes2d:
    """The mean of each 2 × 2 values, a half rounded up."""
    a, b, c, d = (quarter.astype(np.uint16) for quarter in _quarters(values))
    return ((a + b + c + d + 2) >> 2).astype(np.uint8)


def level_sizes(height_px: int, width_px: int, smallest_px: int, at_least: int = 1) -> list[tuple[int, int]]:
    """(height, width) of all levels, the full one first, until one fits into `smallest_px`."""
    sizes = [(height_px, width_px)]
    while max(sizes[-1]) > smallest_px or len(sizes) < at_least:
        height, width = sizes[-1]
        sizes.append(((height + 1) // 2, (width + 1) // 2))
    return sizes


def bands(plane: Labels, multiple: int) -> Iterator[tuple[int, Bytes2d]]:
    """(first row, rows) of the whole width, the number of rows a multiple of `multiple` but for the last."""
    rows = max(1, BAND_PIXELS // (plane.width_px * multiple)) * multiple
    for top in range(0, plane.height_px, rows):
        yield top, plane.read(top, 0, min(rows, plane.height_px - top), plane.width_px)


@contextmanager
def levels(plane: Labels, sizes: list[tuple[int, int]], halve: Halve, scratch: Path) -> Iterator[list[Labels]]:
    """The plane and its smaller copies, which are kept in files in the folder `scratch`."""
    with ExitStack() as stack:
        made: list[Labels] = [plane]
        for number, (height, width) in enumerate(sizes[1:], start=1):
            half = stack.enter_context(Plane(scratch / f"level{number}", height, width))
            for top, band in bands(made[-1], 2):
                half.write(top // 2, 0, halve(band))
            made.append(half)
        yield made


def _quarters(values: Bytes2d) -> tuple[Bytes2d, Bytes2d, Bytes2d, Bytes2d]:
    """The four pixels of each 2 × 2; an odd last row or column is repeated."""
    height, width = values.shape
    even = np.pad(values, ((0, height % 2), (0, width % 2)), mode="edge")
    return even[::2, ::2], even[::2, 1::2], even[1::2, ::2], even[1::2, 1::2]
