"""Images whose two stains are known: nuclei of haematoxylin on a ground of eosin, mixed as in tissue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MATRICES = {
    "ruifrok": [[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]],
    "macenko": [[0.5626, 0.7201, 0.4062], [0.2159, 0.8012, 0.5581]],
    "blue": [[0.72, 0.62, 0.31], [0.27, 0.88, 0.39]],
    "pale": [[0.48, 0.77, 0.42], [0.18, 0.84, 0.51]],
}


def unit(matrix: list[list[float]]) -> NDArray[np.float64]:
    """Rows of length 1."""
    rows = np.array(matrix, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def concentrations_of_tissue(size_px: int, seed: int) -> NDArray[np.float64]:
    """[size², 2]: discs of haematoxylin with a little eosin, eosin with a trace of haematoxylin, glass."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size_px, :size_px]
    nucleus = np.zeros((size_px, size_px), dtype=bool)
    for x, y, radius in zip(*random.uniform(0, size_px, (2, size_px)), random.uniform(5, 11, size_px), strict=True):
        if random.random() < 0.6 * size_px / 400:
            nucleus |= (columns - x) ** 2 + (rows - y) ** 2 < radius**2
    glass = np.sin(columns / 31 + 2 * np.sin(rows / 47)) > 0.9
    haematoxylin = np.where(nucleus, random.gamma(9, 0.14, nucleus.shape), random.gamma(1.5, 0.04, nucleus.shape))
    eosin = np.where(nucleus, random.gamma(2, 0.08, nucleus.shape), random.gamma(5, 0.14, nucleus.shape))
    both = np.stack([haematoxylin, eosin], axis=-1)
    both[glass & ~nucleus] = 0.01
    return both.reshape(-1, 2)


def render(
    concentrations: NDArray[np.float64],
    matrix: NDArray[np.float64],
    size_px: int,
    seed: int,
    noise: float = 2.0,
) -> NDArray[np.uint8]:
    """255·exp(−C·M) with camera noise, 8 bits: [size, size, 3]."""
    light = 255 * np.exp(-concentrations @ matrix)
    light = light + np.random.default_rng([seed, 1]).normal(0, noise, light.shape)
    return np.clip(np.round(light), 0, 255).astype(np.uint8).reshape(size_px, size_px, 3)


def stained_image(name: str, size_px: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """An image and its known stain matrix."""
    matrix = unit(MATRICES[name])
    return render(concentrations_of_tissue(size_px, seed), matrix, size_px, seed), matrix


def angle_degrees(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Between two stain vectors."""
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
