"""Images of a prepared set, as they are and rescaled."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.declare import Benchmark
from seunet.data import read_manifest
from seunet.images import pillow_codec as raster
from seunet.maths import rescale_pixels

RgbArray = NDArray[np.uint8]


def images_of(prepared: Path, split: str) -> Iterator[tuple[str, RgbArray]]:
    """Name and pixels of each image of a split."""
    for entry in read_manifest(prepared).images:
        if entry.split == split:
            path = prepared / entry.image.path
            yield entry.name, raster.decode_rgb(raster.read_image(path), entry.image.path).pixels


def scaled(pixels: RgbArray, scale: float, antialias: bool = False) -> RgbArray:
    """As in the evaluation: bilinear, without antialiasing unless asked for."""
    return rescale_pixels(pixels, scale, antialias)


def parser_of_prepared(benchmark: Benchmark, description: str | None) -> argparse.ArgumentParser:
    """PREPARED [--cache FOLDER]"""
    made = benchmark.parser(description)
    made.add_argument("prepared", type=Path)
    made.add_argument("--cache", type=Path)
    return made
