"""Nuclei of haematoxylin on eosin at any scale: 22 px across at scale 1, as in the training images."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from support.stained import MATRICES, unit

DIAMETER_PX = 22.0
OPTICS_PX = 1.0


def made_tissue(side_px: int, scale: float, seed: int = 0) -> NDArray[np.uint8]:
    """[side, side, 3]: soft ellipses with chromatin inside, fibres around them, all `scale` times as large."""
    random = np.random.default_rng(seed)
    own_px = max(round(side_px / scale), 8)
    nuclei = np.zeros((own_px, own_px), dtype=np.float32)
    for _ in range(round(own_px**2 / 2200)):
        center = tuple(int(value) for value in random.integers(0, own_px, 2))
        axes = tuple(int(value) for value in np.maximum(DIAMETER_PX / 2 * random.uniform(0.7, 1.3, 2), 1))
        cv2.ellipse(nuclei, center, axes, float(random.uniform(0, 180)), 0, 360, float(random.uniform(0.6, 1.0)), -1)
    chromatin = cv2.GaussianBlur(random.normal(size=nuclei.shape).astype(np.float32), (0, 0), 1.5)
    fibres = cv2.GaussianBlur(random.normal(size=nuclei.shape).astype(np.float32), (0, 0), sigmaX=6, sigmaY=2)
    haematoxylin = nuclei * (1 + chromatin) + 0.08
    eosin = 0.5 + 3 * fibres * (1 - nuclei)
    amounts = np.stack([haematoxylin, eosin], axis=-1)
    amounts = cv2.GaussianBlur(np.maximum(amounts, 0), (0, 0), OPTICS_PX)
    light = (255 * np.exp(-amounts @ unit(MATRICES["macenko"]))).astype(np.float32)
    light += random.normal(0, 1.5, light.shape).astype(np.float32)
    resized = cv2.resize(light, (side_px, side_px), interpolation=cv2.INTER_LINEAR)
    return np.clip(np.rint(resized), 0, 255).astype(np.uint8)
