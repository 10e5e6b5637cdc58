"""Images of anything but stained tissue: photographs and print from scikit-image, noise, patterns, nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

RgbArray = NDArray[np.uint8]

PHOTOGRAPHS = (
    "astronaut",
    "brick",
    "camera",
    "cell",
    "chelsea",
    "clock",
    "coffee",
    "coins",
    "colorwheel",
    "grass",
    "gravel",
    "hubble_deep_field",
    "moon",
    "page",
    "retina",
    "rocket",
    "text",
)
PINK = np.array([190.0, 130.0, 180.0])
SIDE_PX = 512


def photograph(name: str) -> RgbArray:
    """One of scikit-image's, as 8-bit RGB."""
    import skimage.data

    pixels = np.asarray(getattr(skimage.data, name)())
    if pixels.dtype != np.uint8:
        pixels = np.clip(pixels * 255.0, 0, 255).astype(np.uint8)
    return grey(pixels) if pixels.ndim == 2 else np.ascontiguousarray(pixels[..., :3])


def grey(values: NDArray[np.generic]) -> RgbArray:
    return np.repeat(np.asarray(values).astype(np.uint8)[..., None], 3, axis=2)


def _noise(*shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(8).normal(size=shape)


def _pink(values: NDArray[np.float64]) -> RgbArray:
    """Values of deviation 1 as shades of the colour of H&E."""
    return np.clip(PINK + 25 * values, 0, 255).astype(np.uint8)


def smooth_noise(sigma: float) -> NDArray[np.float64]:
    """Three independent Gaussian fields."""
    fields = cv2.GaussianBlur(_noise(SIDE_PX, SIDE_PX, 3), (0, 0), sigma)
    return np.asarray(fields / fields.std())


def two_stain_noise(sigma: float) -> RgbArray:
    """Smooth random amounts of two stains: the colours of H&E with none of its structure."""
    fields = smooth_noise(sigma)
    haematoxylin, eosin = np.exp(0.5 * fields[..., :1]), np.exp(0.3 * fields[..., 1:2])
    density = haematoxylin * np.array([0.30, 0.40, 0.15]) + eosin * np.array([0.05, 0.40, 0.10])
    light: RgbArray = np.clip(255 * np.exp(-density), 0, 255).astype(np.uint8)
    return light


def pink_spectrum(power: float) -> RgbArray:
    """Noise whose amplitude falls as frequency^−power, in one colour."""
    frequency = np.fft.fftfreq(SIDE_PX)
    radius = np.hypot(frequency[:, None], frequency[None])
    radius[0, 0] = 1
    field = np.fft.ifft2(np.fft.fft2(_noise(SIDE_PX, SIDE_PX)) / radius**power).real
    return _pink((field / field.std())[..., None] * np.array([1.0, 0.8, 0.6]))


def checkerboard(square_px: int) -> RgbArray:
    rows, columns = np.mgrid[:SIDE_PX, :SIDE_PX]
    return grey(255 * ((rows // square_px + columns // square_px) % 2))


def _ramp() -> NDArray[np.float64]:
    return np.linspace(0, 255, SIDE_PX)[None, :] * np.ones((SIDE_PX, 1))


MADE: dict[str, Callable[[], RgbArray]] = {
    "white": lambda: np.full((SIDE_PX, SIDE_PX, 3), 255, dtype=np.uint8),
    "empty glass": lambda: np.clip(243 + 1.5 * _noise(SIDE_PX, SIDE_PX, 3), 0, 255).astype(np.uint8),
    "plain pink": lambda: np.full((SIDE_PX, SIDE_PX, 3), PINK, dtype=np.uint8),
    "black": lambda: np.zeros((SIDE_PX, SIDE_PX, 3), dtype=np.uint8),
    "uniform noise": lambda: np.random.default_rng(8).integers(0, 256, (SIDE_PX, SIDE_PX, 3)).astype(np.uint8),
    "grey noise": lambda: grey(np.clip(128 + 40 * _noise(SIDE_PX, SIDE_PX), 0, 255)),
    "pink noise": lambda: _pink(_noise(SIDE_PX, SIDE_PX, 3)),
    "smooth noise, σ = 2": lambda: _pink(smooth_noise(2)),
    "smooth noise, σ = 6": lambda: _pink(smooth_noise(6)),
    "1/f noise": lambda: pink_spectrum(1),
    "1/f² noise": lambda: pink_spectrum(2),
    "two stains at random, σ = 2": lambda: two_stain_noise(2),
    "two stains at random, σ = 4": lambda: two_stain_noise(4),
    "grey gradient": lambda: grey(_ramp()),
    "coloured gradient": lambda: np.stack([_ramp(), 255 - _ramp() / 2, _ramp().T], axis=2).astype(np.uint8),
    "checkerboard of 4 px": lambda: checkerboard(4),
    "checkerboard of 32 px": lambda: checkerboard(32),
}


def foreign_images() -> dict[str, Callable[[], RgbArray]]:
    """All of them, made when they are asked for."""
    return {**{name: partial(photograph, name) for name in PHOTOGRAPHS}, **MADE}
