"""Where windows lie on an image, and how much of each is annotated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def window_starts(length_px: int, size_px: int, stride_px: int) -> list[int]:
    """Starts 0, stride, 2·stride … that fit, and one flush with the end if they leave a rest uncovered.

    >>> window_starts(1000, 400, 200)
    [0, 200, 400, 600]
    >>> window_starts(1100, 512, 512)
    [0, 512, 588]

    A length shorter than the window has the one start 0: the window is padded when it is read.
    """
    if length_px <= size_px:
        return [0]
    starts = list(range(0, length_px - size_px + 1, stride_px))
    if starts[-1] + size_px < length_px:
        starts.append(length_px - size_px)
    return starts


def window_grid(height_px: int, width_px: int, size_px: int, stride_px: int) -> list[tuple[int, int]]:
    """The (x, y) of every window, row by row."""
    rows = window_starts(height_px, size_px, stride_px)
    columns = window_starts(width_px, size_px, stride_px)
    return [(x, y) for y in rows for x in columns]


def annotated_fraction(mask: NDArray[Any], x: int, y: int, size_px: int, ignore_code: int) -> float:
    """The share of a window's size_px² pixels that carry a class; pixels beyond the image do not."""
    part = mask[y : y + size_px, x : x + size_px]
    return int(np.count_nonzero(part != ignore_code)) / (size_px * size_px)
