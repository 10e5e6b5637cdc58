"""The moments of a scale space, block by block of the image (`signatures.py` says what for)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.scale.signatures import LADDER, MOMENTS, smoothing_taps

FloatImage = NDArray[np.float32]

BLOCK_PX = 128
"""About the side of the blocks that are averaged by themselves, in pixels of the image."""

STRIP_ROWS = 64
_ONE = np.ones(1, dtype=np.float32)


def block_counts(height_px: int, width_px: int) -> tuple[int, int]:
    """How many blocks lie along each side; they are equal parts of it, so nothing is left over."""
    return max(round(height_px / BLOCK_PX), 1), max(round(width_px / BLOCK_PX), 1)


def block_moments(plane: FloatImage) -> NDArray[np.float64]:
    """The mean of each of `MOMENTS` at each σ in each block of [height, width]: [rows, columns, σ, moments]."""
    blocks = block_counts(*plane.shape)
    result = np.empty((*blocks, len(LADDER), len(MOMENTS)))
    current, smooth, level = plane, plane, 0
    for number, rung in enumerate(LADDER):
        if rung.level != level:
            current, level = np.ascontiguousarray(smooth[::2, ::2]), rung.level
        taps = smoothing_taps(rung.added)
        smooth = _filtered(current, taps, taps)
        _moments(smooth, rung.sigma, result[:, :, number])
    return result


def block_means(plane: FloatImage, blocks: tuple[int, int]) -> NDArray[np.float32]:
    """The mean of each of rows × columns equal parts of the plane, pixels on an edge shared: two small products."""
    height, width = plane.shape
    return _parts(blocks[0], height) @ (plane @ _parts(blocks[1], width).T)


def _moments(smooth: FloatImage, sigma: float, out: NDArray[np.float64]) -> None:
    """Into out [rows, columns, moments]; strip by strip, so that what is made on the way stays in the cache."""
    rows, columns = out.shape[:2]
    height, width = smooth.shape
    sums = np.empty((len(MOMENTS), height, columns), dtype=np.float32)
    for top in range(0, height, STRIP_ROWS):
        bottom = min(top + STRIP_ROWS, height)
        above, below = max(top - 1, 0), min(bottom + 1, height)
        for number, plane in enumerate(_powers(smooth[above:below], sigma)):
            sums[number, top:bottom] = plane[top - above : bottom - above] @ _parts(columns, width).T
    for number in range(len(MOMENTS)):
        out[:, :, number] = _parts(rows, height) @ sums[number]


def _powers(smooth: FloatImage, sigma: float) -> Iterator[FloatImage]:
    """What `MOMENTS` are the means of.

    Central differences of the smoothed plane are the derivatives of the discrete scale space.
    """
    first = np.array([-sigma / 2, 0, sigma / 2], dtype=np.float32)
    second = np.array([1, -2, 1], dtype=np.float32) * np.float32(sigma * sigma)
    yield smooth
    yield np.square(smooth)
    gradient2 = np.square(_filtered(smooth, first, _ONE))
    gradient2 += np.square(_filtered(smooth, _ONE, first))
    yield gradient2
    yield np.square(gradient2)
    laplacian = _filtered(smooth, second, _ONE)
    laplacian += _filtered(smooth, _ONE, second)
    # Nuclei are peaks of optical density: their Laplacian is counted as positive.
    np.negative(laplacian, out=laplacian)
    yield np.abs(laplacian)
    square = np.square(laplacian)
    yield square
    yield square * laplacian
    yield np.square(square)


def _filtered(plane: FloatImage, row: FloatImage, column: FloatImage) -> FloatImage:
    """Filtered along both axes, mirrored at its edges."""
    border = cv2.BORDER_REFLECT_101
    result: FloatImage = cv2.sepFilter2D(plane, -1, row, column, borderType=border)  # type: ignore[assignment]
    return result


@lru_cache(maxsize=256)
def _parts(count: int, length: int) -> FloatImage:
    """[count, length]: which share of each pixel belongs to each of `count` equal parts, divided by their length."""
    edges = np.linspace(0, length, count + 1)
    pixels = np.arange(length)
    inside = np.minimum(pixels + 1, edges[1:, None]) - np.maximum(pixels, edges[:-1, None])
    parts: FloatImage = (np.maximum(inside, 0) * (count / length)).astype(np.float32)
    return parts
