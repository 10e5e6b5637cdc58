"""What microscopes, scanners and file formats do to an image: blur, sharpening, fewer pixels, noise, JPEG.

Pure functions of uint8 [height, width, 3] images, and the draw of how much of each a window gets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seunet.settings import Section

Rgb = NDArray[np.uint8]

BLUR_PX = (0.5, 2.2)
"""σ of a blur; in windows that are magnified s > 1 times, s times as much: they are soft already."""
SHARPEN = (0.3, 1.5)
"""How much of the difference to the blurred image is added."""
SHARPEN_PX = 1.0
SHRINK = (1.2, 3.0)
"""How many times smaller an image is made before it is enlarged again."""
NOISE = (2.0, 14.0)
"""Standard deviation in grey levels of 255."""
JPEG_QUALITY = (25, 90)


Share = Field(default=0.0, ge=0, le=1)


class OpticsShares(Section):
    """The fraction of windows that each change is made to; they are drawn one by one, so some windows get several."""

    blur: float = Share
    sharpen: float = Share
    resample: float = Share
    noise: float = Share
    jpeg: float = Share


class Optics(NamedTuple):
    """What is done to one window; 0 of anything leaves it out."""

    blur_px: float = 0.0
    sharpen: float = 0.0
    shrink: float = 0.0
    noise: float = 0.0
    noise_seed: int = 0
    jpeg_quality: int = 0


def draw_optics(shares: OpticsShares, random: np.random.Generator) -> Optics:
    """What one window gets.  Blur and sharpening exclude each other: one would undo the other."""
    chosen = random.random(5)
    blur, sharpen, shrink, noise, quality = (
        float(low + (high - low) * place)
        for (low, high), place in zip((BLUR_PX, SHARPEN, SHRINK, NOISE, JPEG_QUALITY), random.random(5), strict=True)
    )
    noise_seed = int(random.integers(2**32))
    blurs = chosen[0] < shares.blur
    return Optics(
        blur if blurs else 0.0,
        sharpen if not blurs and chosen[1] < shares.sharpen else 0.0,
        shrink if chosen[2] < shares.resample else 0.0,
        noise if chosen[3] < shares.noise else 0.0,
        noise_seed,
        round(quality) if chosen[4] < shares.jpeg else 0,
    )


def with_optics(image: Rgb, optics: Optics, scale: float = 1.0) -> Rgb:
    """The changes in the order of a microscope: lens, scanner's sharpening, camera's pixels, its noise, the file."""
    if optics.blur_px:
        image = blurred(image, optics.blur_px * max(scale, 1.0))
    if optics.sharpen:
        image = sharpened(image, optics.sharpen)
    if optics.shrink:
        image = shrunk_and_enlarged(image, optics.shrink)
    if optics.noise:
        image = noisy(image, optics.noise, optics.noise_seed)
    return through_jpeg(image, optics.jpeg_quality) if optics.jpeg_quality else image


def blurred(image: Rgb, sigma_px: float) -> Rgb:
    """Out of focus, as a Gaussian of this σ."""
    return cv2.GaussianBlur(image, (0, 0), sigma_px).astype(np.uint8, copy=False)


def sharpened(image: Rgb, amount: float) -> Rgb:
    """Unsharp masking, as scanners do: x + amount · (x − blurred x)."""
    return cv2.addWeighted(image, 1 + amount, blurred(image, SHARPEN_PX), -amount, 0).astype(np.uint8, copy=False)


def shrunk_and_enlarged(image: Rgb, factor: float) -> Rgb:
    """`factor` times fewer pixels by averaging, and as many as before by interpolation: the magnification stays."""
    height, width = image.shape[:2]
    small = (max(round(width / factor), 1), max(round(height / factor), 1))
    fewer = cv2.resize(image, small, interpolation=cv2.INTER_AREA)
    return cv2.resize(fewer, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.uint8, copy=False)


def noisy(image: Rgb, deviation: float, seed: int) -> Rgb:
    """Normal noise of this standard deviation in grey levels, another for each pixel and colour."""
    noise = np.random.default_rng(seed).standard_normal(image.shape, dtype=np.float32)
    return np.clip(np.rint(image + deviation * noise), 0, 255).astype(np.uint8)


def through_jpeg(image: Rgb, quality: int) -> Rgb:
    """Written as JPEG of this quality and read again."""
    _, data = cv2.imencode(".jpg", np.ascontiguousarray(image[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality])
    read: Any = cv2.imdecode(data, cv2.IMREAD_COLOR)
    return np.ascontiguousarray(read[..., ::-1], np.uint8)
