r"""Vahadane stain separation: sparse, non-negative, two stains (Vahadane et al., IEEE TMI 2016).

Light that passes stains of concentration C and absorbance M has optical density X = C·M (Beer–Lambert), where
X = −ln(I / 255).  M [2, 3] has a unit row for haematoxylin and one for eosin, and is found with C by

    min ½‖X − C·M‖² + λ‖C‖₁   with C ≥ 0, M ≥ 0, ‖M_k‖ = 1.

With two stains the problem in C has a closed form for each pixel, so no general lasso solver is needed and no
atom can become negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Uint8Array = NDArray[np.uint8]

LAMBDA_FIT = 0.1
"""As published."""
LAMBDA_TUNED = 0.02
"""Draws the two vectors together less (docs/results/data.md)."""
LAMBDA_APPLY = 0.01
LUMINOSITY = 0.8
"""Tissue is what is darker than this, as CIE L* / 100."""

SAMPLES = 40_000
CANDIDATES = 4_000_000
"""Pixels looked at for tissue, evenly spaced."""

CHUNK_PIXELS = 1 << 18
"""Pixels transformed at once: what fits the cache, and bounds memory on large images."""

ITERATIONS = 200
MIN_TISSUE = 0.005
MIN_SPREAD = 0.03
"""Second over first singular value of the optical densities, below which there is one stain."""

START = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]])
"""Where the search starts: haematoxylin and eosin after Ruifrok and Johnston (2001)."""

DENSITY = -np.log(np.maximum(np.arange(256), 1) / 255.0).astype(np.float32)


QUPATH = np.array([[0.651, 0.701, 0.290], [0.216, 0.801, 0.558]])
"""Haematoxylin and eosin as QuPath has them before somebody estimates others."""

_BASIS = np.stack([*(QUPATH / np.linalg.norm(QUPATH, axis=1, keepdims=True)), np.cross(*QUPATH)])
_BASIS[2] /= np.linalg.norm(_BASIS[2])
_HAEMATOXYLIN = (np.linalg.inv(_BASIS)[:, :1] * (DENSITY / np.log(10.0))).astype(np.float32)
"""[3, 256]: what each value of each channel adds to the density of haematoxylin."""


class Stains(NamedTuple):
    """`matrix` [2, 3]: unit absorbances of haematoxylin, eosin; `strength` [2]: 99th percentiles of C."""

    matrix: Float64Array
    strength: Float64Array


class NoStains(NamedTuple):
    """Why no two stains can be distinguished in an image."""

    reason: str


def tissue(rgb: Uint8Array) -> NDArray[np.bool_]:
    """Pixels of rgb [..., 3] with L* < 80: L* = 116 Y^⅓ − 16 of the relative luminance Y of sRGB."""
    value = np.arange(256) / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    weights = np.array([0.2126, 0.7152, 0.0722])
    tables = (weights[:, None] * linear).astype(np.float32)
    luminance = tables[0][rgb[..., 0]] + tables[1][rgb[..., 1]] + tables[2][rgb[..., 2]]
    below: NDArray[np.bool_] = luminance < ((100 * LUMINOSITY + 16) / 116) ** 3
    return below


def haematoxylin_density(rgb: Uint8Array) -> Float32Array:
    """Density C₀ of haematoxylin of rgb [..., 3] in −log₁₀(I / 255) = C·M, for QuPath's stains and a residual.

    Fixed stains: the number depends on the pixel alone, so it is the same in every tile and comparable between slides.
    """
    density: Float32Array = sum(table[rgb[..., channel]] for channel, table in enumerate(_HAEMATOXYLIN))
    return np.maximum(density, 0)


def concentrations(density: NDArray[np.floating], matrix: Float64Array, penalty: float) -> Float32Array:
    """argmin over C ≥ 0 of ½‖X − C·M‖² + λ‖C‖₁ for density X [n, 3] and unit rows M: [n, 2].

    Stationarity gives C·MMᵀ = XMᵀ − λ =: b.  Where that solution has a negative entry the optimum has a zero
    there and max(b, 0) in the other place.
    """
    cosine = float(matrix[0] @ matrix[1])
    b = density.astype(np.float32, copy=False) @ matrix.T.astype(np.float32) - np.float32(penalty)
    first, second = b[:, 0], b[:, 1]
    both_first = first - cosine * second
    both_second = second - cosine * first
    scale = 1.0 / max(1.0 - cosine * cosine, 1e-9)
    out = np.empty_like(b)
    out[:, 0] = np.where(both_second < 0, first, both_first * scale)
    out[:, 1] = np.where(both_first < 0, second, both_second * scale)
    return np.maximum(out, 0, out=out)


def fit_stains(rgb: Uint8Array, penalty: float = LAMBDA_FIT) -> Stains | NoStains:
    """The two stains of rgb [height, width, 3], from a subsample of its tissue; no randomness.

    `penalty` is λ, which draws the two vectors together.
    """
    pixels = rgb.reshape(-1, 3)
    pixels = pixels[:: max(len(pixels) // CANDIDATES, 1)]
    inside = pixels[tissue(pixels)]
    if len(inside) < max(MIN_TISSUE * len(pixels), 64):
        return NoStains(f"blank: {100 * len(inside) / max(len(pixels), 1):.1f} % tissue")
    step = max(len(inside) // SAMPLES, 1)
    density = DENSITY[inside[::step]].astype(np.float64)
    singular = np.sqrt(np.linalg.eigvalsh(density.T @ density)[::-1].clip(0))
    if singular[1] < MIN_SPREAD * singular[0]:
        return NoStains(f"one stain: spread {singular[1] / singular[0]:.3f}")
    matrix = _learn(density, penalty)
    amounts = concentrations(density, matrix, LAMBDA_APPLY)
    strength = np.percentile(amounts, 99, axis=0).astype(np.float64)
    if strength.min() <= 0.01 * strength.max():
        return NoStains(f"one stain: strengths {strength[0]:.3f} and {strength[1]:.3f}")
    return Stains(matrix, strength)


def apply_stains(rgb: Uint8Array, source: Stains, target: Stains) -> Uint8Array:
    """rgb as if stained like `target`: C of the source, 99th percentile matched, back by 255·exp(−C·M)."""
    mixing = ((target.strength / source.strength)[:, None] * target.matrix).astype(np.float32)
    pixels = rgb.reshape(-1, 3)
    out = np.empty_like(pixels)
    for start in range(0, len(pixels), CHUNK_PIXELS):
        part = slice(start, start + CHUNK_PIXELS)
        light = concentrations(DENSITY[pixels[part]], source.matrix, LAMBDA_APPLY) @ mixing
        np.exp(np.negative(light, out=light), out=light)
        light *= 255
        out[part] = light + 0.5
    return out.reshape(rgb.shape)


def with_gains(rgb: Uint8Array, matrix: Float64Array, gains: tuple[float, float]) -> Uint8Array:
    """rgb with the optical density of each stain of `matrix` [2, 3] multiplied by its gain.

    What the two stains do not explain stays as it is, so gains of 1 change nothing.
    """
    more = ((np.asarray(gains) - 1)[:, None] * matrix).astype(np.float32)
    pixels = rgb.reshape(-1, 3)
    out = np.empty_like(pixels)
    for start in range(0, len(pixels), CHUNK_PIXELS):
        part = slice(start, start + CHUNK_PIXELS)
        light = np.exp(-(concentrations(DENSITY[pixels[part]], matrix, 0.0) @ more))
        light *= pixels[part]
        out[part] = np.minimum(light + 0.5, 255)
    return out.reshape(rgb.shape)


def _learn(density: Float64Array, penalty: float) -> Float64Array:
    """Alternate C in closed form and one pass of block coordinate descent in M until M stands still."""
    matrix: Float64Array = START / np.linalg.norm(START, axis=1, keepdims=True)
    for _ in range(ITERATIONS):
        amounts = concentrations(density, matrix, penalty).astype(np.float64)
        gram, mixed = amounts.T @ amounts, amounts.T @ density
        before = matrix.copy()
        for k in range(2):
            if gram[k, k] > 0:
                row = np.maximum(matrix[k] + (mixed[k] - gram[k] @ matrix) / gram[k, k], 0)
                matrix[k] = row / max(float(np.linalg.norm(row)), 1e-12)
        if np.abs(matrix - before).max() < 1e-6:
            break
    # Haematoxylin takes more of the red light.
    return matrix if matrix[0, 0] >= matrix[1, 0] else matrix[::-1].copy()
