"""A plane of codes at the size of a picture: how much of each pixel every code has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seunet.results.find_objects import Labels

Shares = NDArray[np.float32]

BAND_PIXELS: Final = 1 << 24


def code_shares(plane: Labels, codes: Sequence[int], height: int, width: int) -> Shares:
    """[codes, height, width]: the share of each pixel of a smaller picture that each code has."""
    rows, columns = min(height, plane.height_px), min(width, plane.width_px)
    shares = np.zeros((len(codes), rows, columns), dtype=np.float32)
    left = np.arange(columns + 1) * plane.width_px // columns
    for first, last, tops in _strips(plane, rows):
        strip = plane.read(int(tops[0]), 0, int(tops[-1] - tops[0]), plane.width_px)
        sizes = np.diff(tops)[:, None] * np.diff(left)[None]
        present = set(_codes_in(strip).tolist())
        for place, code in enumerate(codes):
            if code not in present:
                continue
            across = np.add.reduceat(strip == code, left[:-1], axis=1, dtype=np.uint32)
            shares[place, first:last] = np.add.reduceat(across, tops[:-1] - tops[0], axis=0) / sizes
    if (rows, columns) == (height, width):
        return shares
    at_row, at_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    return shares[:, at_row[:, None], at_column[None]]


def _strips(plane: Labels, rows: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Rows first … last − 1 of the picture, and the rows of the plane at which these begin and the last ends."""
    tops = np.arange(rows + 1) * plane.height_px // rows
    step = max(1, BAND_PIXELS * rows // (plane.height_px * plane.width_px))
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield first, last, tops[first : last + 1]


def _codes_in(strip: NDArray[np.uint8]) -> NDArray[np.intp]:
    import cv2

    return np.flatnonzero(cv2.calcHist([strip], [0], None, [256], [0, 256]))
