"""Where windows lie on an image, and how much of each is annotated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MAX_PADDED: Final = 0.1
"""Of the windows' area: more of it beyond the images is better spent on smaller windows."""


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


def padded_share(sizes_px: Sequence[tuple[int, int]], size_px: int, stride_px: int) -> float:
    """How much of the area of all windows lies beyond the images, which are (height, width).

    >>> round(padded_share([(400, 400)], 512, 512), 2)
    0.39
    """
    windows = covered = 0
    for height, width in sizes_px:
        count = len(window_starts(height, size_px, stride_px)) * len(window_starts(width, size_px, stride_px))
        windows += count
        covered += count * min(height, size_px) * min(width, size_px)
    return 1 - covered / max(windows * size_px * size_px, 1)


def fitting_size_px(sizes_px: Sequence[tuple[int, int]], largest_px: int) -> int:
    """The largest side of windows, lying side by side, that leaves little of them beyond the images.

    >>> fitting_size_px([(400, 400)], 512), fitting_size_px([(1000, 600)], 512)
    (400, 512)
    """
    sides = {min(side, largest_px) for size in sizes_px for side in size} | {largest_px}
    fitting = [side for side in sides if padded_share(sizes_px, side, side) <= MAX_PADDED]
    return max(fitting, default=min(sides))
