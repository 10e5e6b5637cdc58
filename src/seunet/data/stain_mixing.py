"""Other stainings of the same tissue: more or less of each stain, and stains of another hue.

Optical density is X = C·M with a row of M per stain (haematoxylin, eosin, and what is neither).  X′ = X·M⁻¹·G·M′ has G
times as much of each and the hues M′: one 3 × 3 matrix per window.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from seunet.maths.stain import DENSITY, START

Rgb = NDArray[np.uint8]
Matrix = NDArray[np.float64]

HUE = 0.15
"""Of `stain_mix`: the standard deviation by which each component of a stain's unit vector moves."""


class Mixing(NamedTuple):
    """How many times as much haematoxylin and eosin, and how their hues move: [2, 3]."""

    haematoxylin: float
    eosin: float
    hues: tuple[tuple[float, float, float], tuple[float, float, float]]


def draw_mixing(strength: float, random: np.random.Generator) -> Mixing:
    """Gains up to 2^±strength; in a third of the draws eosin alone is changed: it varies most between laboratories."""
    first, second = (float(2 ** (strength * place)) for place in random.uniform(-1, 1, 2))
    moves = HUE * strength * random.standard_normal((2, 3))
    if random.random() < 1 / 3:
        first, moves = 1.0, np.zeros((2, 3))
    hues = tuple(tuple(float(step) for step in row) for row in moves)
    return Mixing(first, second, hues)  # type: ignore[arg-type]


def mixing_matrix(mixing: Mixing) -> Matrix:
    """M⁻¹·G·M′, which a row of optical densities is multiplied by from the right."""
    stains = START / np.linalg.norm(START, axis=1, keepdims=True)
    other = np.cross(stains[0], stains[1])
    basis = np.vstack([stains, other / np.linalg.norm(other)])
    moved = np.maximum(stains + np.array(mixing.hues), 0)
    target = np.vstack([moved / np.linalg.norm(moved, axis=1, keepdims=True), basis[2]])
    gains = np.array([mixing.haematoxylin, mixing.eosin, 1.0])
    matrix: Matrix = np.linalg.inv(basis) @ (gains[:, None] * target)
    return matrix


def restained(image: Rgb, mixing: Mixing) -> Rgb:
    """uint8 [height, width, 3] as if stained otherwise; white glass stays white."""
    density = cv2.transform(DENSITY[image], mixing_matrix(mixing).T.astype(np.float32))
    light = cv2.exp(-density)
    result: Rgb = np.clip(light * 255 + 0.5, 0, 255).astype(np.uint8)
    return result
