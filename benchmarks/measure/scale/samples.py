"""Images at other scales, in other stains and less sharp: what the scale estimator is fitted and tested on.

Every sample is a function of the image, its name and the sample's number; nothing else is random.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.declare import Benchmark
from seunet.data import Augmentation, draw, read_manifest, stain_table
from seunet.images import pillow_codec as raster
from seunet.maths import rescale

RgbArray = NDArray[np.uint8]

SCALE_RANGE = (0.16, 6.2)
"""Beyond what is asked for, 0.25 to 4: an estimate that errs there is still within what was seen."""

LARGEST_PX = 768
STAIN = Augmentation(flips=False, stain_jitter=0.35)


class Sample(NamedTuple):
    """An image `scale` times as large as the one it was made from, and what else was done to it."""

    pixels: RgbArray
    scale: float
    changes: tuple[str, ...]


def images_of(prepared: Path, split: str) -> Iterator[tuple[str, RgbArray]]:
    """Name and pixels of each image of a split."""
    for entry in read_manifest(prepared).images:
        if entry.split == split:
            path = prepared / entry.image.path
            yield entry.name, raster.decode_rgb(raster.read_image(path), entry.image.path).pixels


def scaled(pixels: RgbArray, scale: float, antialias: bool = False) -> RgbArray:
    """As in the evaluation: bilinear, without antialiasing unless asked for."""
    planes = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None].float()
    result = rescale(planes, scale, antialias)[0].round().clamp(0, 255).to(torch.uint8)
    return np.ascontiguousarray(result.numpy().transpose(1, 2, 0))


def varied(name: str, pixels: RgbArray, count: int) -> Iterator[Sample]:
    """`count` parts of the image at scales uniform in octaves; each change is made in some of them."""
    for number in range(count):
        random = np.random.default_rng([zlib.crc32(name.encode()), number])
        scale = float(np.exp(random.uniform(*np.log(SCALE_RANGE))))
        yield _varied(pixels, scale, random, number)


def _varied(pixels: RgbArray, scale: float, random: np.random.Generator, number: int) -> Sample:
    height, width = pixels.shape[:2]
    largest = min(min(height, width) * scale, LARGEST_PX)
    wanted = (
        float(np.exp(random.uniform(np.log(min(160, largest)), np.log(largest)))) if random.random() < 0.5 else largest
    )
    side = min(int(wanted / scale), height, width)
    x, y = random.integers(0, width - side + 1), random.integers(0, height - side + 1)
    part, changes = pixels[y : y + side, x : x + side], []
    if random.random() < 0.5:
        chance = draw(STAIN, int(random.integers(1 << 30)), 0, number)
        part = cv2.LUT(np.ascontiguousarray(part), stain_table(chance)[None]).astype(np.uint8)
        changes.append("stain")
    # The microscope, before the image is rescaled: how sharp it is says nothing of the scale.
    optics = random.random()
    if optics < 0.5:
        part = blurred(part, float(random.uniform(0.3, 1.6)))
        changes.append("optics")
    elif optics < 0.65:
        part = sharpened(part, float(random.uniform(0.3, 1.0)))
        changes.append("sharpened")
    if random.random() < 0.3:
        part = through_jpeg(part, int(random.integers(50, 92)))
        changes.append("source jpeg")
    antialias = scale < 1 and random.random() < 0.35
    part = scaled(part, scale, antialias)
    changes += ["antialias"] * antialias
    if random.random() < 0.3:
        part = blurred(part, float(random.uniform(0.3, 1.0)))
        changes.append("blur")
    if random.random() < 0.25:
        part = through_jpeg(part, int(random.integers(60, 95)))
        changes.append("jpeg")
    return Sample(part, scale, tuple(changes))


def blurred(pixels: RgbArray, sigma: float) -> RgbArray:
    """A little out of focus."""
    return cv2.GaussianBlur(pixels, (0, 0), sigma).astype(np.uint8)


def sharpened(pixels: RgbArray, amount: float) -> RgbArray:
    """As scanners do it: what a blur of one pixel takes away, added once more."""
    soft = cv2.GaussianBlur(pixels, (0, 0), 1.0)
    return cv2.addWeighted(pixels, 1 + amount, soft, -amount, 0).astype(np.uint8)


def through_jpeg(pixels: RgbArray, quality: int) -> RgbArray:
    """As slides are kept."""
    data = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.ascontiguousarray(decoded[..., ::-1]).astype(np.uint8)


def parser_of_prepared(benchmark: Benchmark, description: str | None) -> argparse.ArgumentParser:
    """PREPARED [--cache FOLDER]"""
    made = benchmark.parser(description)
    made.add_argument("prepared", type=Path)
    made.add_argument("--cache", type=Path)
    return made
