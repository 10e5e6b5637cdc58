"""Selected objects seen from afar: every one of them, as the share of each tile pixel that it covers."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.viewer.objects.index import Mask, ObjectIndex

AREA: Final = "Area px^2"
FINER: Final = 4
LARGE_PX: Final = 8
"""Tile pixels; a larger object is painted by its outline, a smaller one is a dot of its area at its centre."""


def coverage_tile(
    index: ObjectIndex, mask: Mask, corner: tuple[float, float], level0_px: float, size: tuple[int, int]
) -> NDArray[np.uint8]:
    """[height, width, 4] of a tile whose pixels are `level0_px` wide, colours multiplied by their opacity."""
    width, height = size
    left, top, right, bottom = index.boxes.T
    near = mask & (right >= corner[0]) & (left < corner[0] + width * level0_px)
    near &= (bottom >= corner[1]) & (top < corner[1] + height * level0_px)
    numbers = np.flatnonzero(near)
    boxes = index.boxes[numbers]
    large = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]) > LARGE_PX * level0_px
    shares = _dots(index, numbers[~large], corner, level0_px, size)
    for number in numbers[large].tolist():
        _paint(shares[index.classes[number]], [(ring - corner) / level0_px for ring in index.outline(number)])
    covered = np.maximum(shares.sum(axis=0), 1)
    colors = np.array([*index.class_colors.values()], dtype=np.float32)
    mixed = np.tensordot(shares / covered, colors, axes=(0, 0))
    alpha = np.minimum(shares.sum(axis=0), 1)[..., None] * 255
    tile: NDArray[np.uint8] = np.rint(np.concatenate([mixed, alpha], axis=2)).astype(np.uint8)
    return tile


def _paint(shares: NDArray[np.float32], outline: list[NDArray[np.float64]]) -> None:
    """Add the share of each pixel that lies inside an outline, as far as it is in the tile."""
    height, width = shares.shape
    points = np.concatenate(outline)
    left, top = np.clip(np.floor(points.min(axis=0)).astype(int), 0, (width, height))
    right, bottom = np.clip(np.ceil(points.max(axis=0)).astype(int), 0, (width, height))
    if left >= right or top >= bottom:
        return
    fine = np.zeros(((bottom - top) * FINER, (right - left) * FINER), dtype=np.float32)
    # OpenCV paints the pixels under the outline too: half a pixel less on each side keeps the area.
    moved = [np.rint(((ring - (left, top)) * FINER - 0.5) * 16).astype(np.int32) for ring in outline]
    cv2.fillPoly(fine, moved, 1.0, lineType=cv2.LINE_8, shift=4)
    shares[top:bottom, left:right] += cv2.resize(fine, (right - left, bottom - top), interpolation=cv2.INTER_AREA)


def _dots(
    index: ObjectIndex, numbers: NDArray[np.int64], corner: tuple[float, float], level0_px: float, size: tuple[int, int]
) -> NDArray[np.float32]:
    """[classes, height, width]: the area of objects over that of a pixel, at their centres."""
    width, height = size
    place = ((index.centers[numbers] - np.array(corner, dtype=np.float32)) / level0_px).astype(np.int64)
    inside = (place >= 0).all(axis=1) & (place[:, 0] < width) & (place[:, 1] < height)
    numbers, place = numbers[inside], place[inside]
    box = index.boxes[numbers]
    area = (
        index.measures[numbers, index.names.index(AREA)]
        if AREA in index.names
        else (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
    )
    count = len(index.class_names)
    cell = (index.classes[numbers].astype(np.int64) * height + place[:, 1]) * width + place[:, 0]
    shares = np.bincount(cell, weights=area / level0_px**2, minlength=count * height * width)
    return shares.reshape(count, height, width).astype(np.float32)
