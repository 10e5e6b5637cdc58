"""Large slides of made tissue, written in bounded memory: a few blocks are drawn and encoded once, then laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray

TILE_PX = 512
SMALLEST_PX = 1024
"""Levels are added until one is at most this large."""

GROUND, NUCLEUS, GLASS = (222, 160, 200), (105, 70, 150), 244
Pixels = NDArray[np.uint8]


def tissue_field(side_px: int, seed: int) -> Pixels:
    """[side, side, 3]: violet nuclei of 14–30 px on a pink ground with waves and camera noise."""
    random = np.random.default_rng(seed)
    waves = np.sin(np.arange(side_px) / 37 + 3 * np.sin(np.arange(side_px) / 211)).astype(np.float32)
    field = np.array(GROUND, dtype=np.float32) + 9 * (waves[:, None, None] + waves[None, :, None])
    for x, y, radius, squeeze in random.uniform((0, 0, 7, 0.7), (side_px, side_px, 15, 1), (side_px**2 // 1600, 4)):
        _draw_nucleus(field, x, y, radius, squeeze)
    noise = random.integers(-6, 7, (side_px, side_px), dtype=np.int8)
    out: Pixels = np.clip(field + noise[..., None], 0, 255).astype(np.uint8)
    return out


def _draw_nucleus(field: NDArray[np.float32], x: float, y: float, radius: float, squeeze: float) -> None:
    left, top = max(int(x - radius), 0), max(int(y - radius), 0)
    part = field[top : int(y + radius) + 2, left : int(x + radius) + 2]
    rows = np.arange(top, top + part.shape[0], dtype=np.float32)[:, None] - np.float32(y)
    columns = np.arange(left, left + part.shape[1], dtype=np.float32)[None] - np.float32(x)
    part[columns**2 + (rows / squeeze) ** 2 < radius**2] = NUCLEUS


class Blocks:
    """What a slide is laid out of: tissue in four flips, islands of it on glass in four, and glass; at every level."""

    def __init__(self, field: Pixels) -> None:
        """`field`: the tissue of a block, [block, block, 3]."""
        self.block_px = block_px = field.shape[0]
        line = np.linspace(-1, 1, block_px, dtype=np.float32) ** 2
        island = np.where((line[:, None] + line[None] < 0.8)[..., None], field, np.uint8(GLASS))
        self._levels = [(field, island)]
        self._encoded: dict[tuple[int, int, int, int], bytes] = {}

    glass = 8

    def pixels(self, level: int, kind: int) -> Pixels:
        """One block, averaged 2 × 2 `level` times: kinds 0–3 are the flips of tissue, 4–7 of an island."""
        while len(self._levels) <= level:
            field, island = self._levels[-1]
            self._levels.append((halved(field), halved(island)))
        if kind == self.glass:
            return np.full_like(self._levels[level][0], GLASS)
        block = self._levels[level][kind // 4]
        return block[:: -1 if kind & 1 else 1, :: -1 if kind & 2 else 1]

    def tile(self, level: int, layout: NDArray[np.int64], row: int, column: int) -> bytes:
        """The encoded tile at (row, column) of a level."""
        block_px = self.block_px >> level
        if block_px >= TILE_PX:
            tiles = block_px // TILE_PX
            kind = int(layout[row // tiles, column // tiles])
            key = (level, kind, row % tiles, column % tiles)
            if key not in self._encoded:
                y, x = (row % tiles) * TILE_PX, (column % tiles) * TILE_PX
                self._encoded[key] = jpeg_tile(self.pixels(level, kind)[y : y + TILE_PX, x : x + TILE_PX])
            return self._encoded[key]
        across = TILE_PX // block_px
        part = np.full((across, across), self.glass)
        known = layout[row * across : (row + 1) * across, column * across : (column + 1) * across]
        part[: known.shape[0], : known.shape[1]] = known
        rows = [np.concatenate([self.pixels(level, int(kind)) for kind in line], axis=1) for line in part]
        return jpeg_tile(np.concatenate(rows))


def slide_layout(count: int, seed: int) -> NDArray[np.int64]:
    """[count, count] kinds of blocks: tissue in the middle, islands at its edge and here and there, glass around it."""
    random = np.random.default_rng([seed, 1])
    line = (np.arange(count) + 0.5) / count * 2 - 1
    radius = np.hypot(line[:, None], 1.3 * line[None])
    layout = np.full((count, count), Blocks.glass)
    flips = random.integers(0, 4, (count, count))
    layout[radius < 0.75] = flips[radius < 0.75] + 4
    layout[radius < 0.55] = flips[radius < 0.55]
    stray = (radius >= 0.75) & (random.random((count, count)) < 0.05)
    layout[stray] = flips[stray] + 4
    return layout


def make_slide(path: Path, side_px: int, seed: int = 0, mpp: float = 0.25, block_px: int | None = None) -> Path:
    """Write a slide of made tissue, `side_px`²."""
    field = tissue_field(block_px or (4096 if side_px > 4096 else 1024), seed)
    blocks, layout = Blocks(field), slide_layout(-(-side_px // field.shape[0]), seed)
    return lay_out_slide(path, side_px, lambda *place: blocks.tile(place[0], layout, *place[1:]), mpp)


def lay_out_slide(path: Path, side_px: int, tile: Callable[[int, int, int], bytes], mpp: float) -> Path:
    """Write a pyramidal TIFF of `side_px`² with JPEG tiles of 512, levels as reduced pages, and its resolution tag.

    `tile(level, row, column)` is an encoded tile (`jpeg_tile`).
    """
    with tifffile.TiffWriter(path, bigtiff=side_px > 60_000) as writer:
        for level in range(32):
            size = side_px >> level
            writer.write(
                _tiles(tile, level, size),
                shape=(size, size, 3),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                photometric="ycbcr",
                subsampling=(1, 1),
                compression="jpeg",
                subfiletype=1 if level else 0,
                resolution=(1e4 / mpp / 2**level, 1e4 / mpp / 2**level),
                resolutionunit="CENTIMETER",
                metadata=None,
            )
            if size <= SMALLEST_PX:
                break
    return path


def _tiles(tile: Callable[[int, int, int], bytes], level: int, size: int) -> Iterator[bytes]:
    count = -(-size // TILE_PX)
    for row in range(count):
        for column in range(count):
            yield tile(level, row, column)


def jpeg_tile(tile: Pixels) -> bytes:
    """A tile as it lies in the file."""
    return bytes(
        imagecodecs.jpeg_encode(
            np.ascontiguousarray(tile), level=85, colorspace="RGB", outcolorspace="YCBCR", subsampling="444"
        )
    )


def halved(pixels: Pixels) -> Pixels:
    """Means of 2 × 2."""
    half = cv2.resize(pixels, (pixels.shape[1] // 2, pixels.shape[0] // 2), interpolation=cv2.INTER_AREA)
    return np.asarray(half, dtype=np.uint8)
