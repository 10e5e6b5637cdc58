"""A model that finds dark discs, trained in a second: small enough for tests, sure enough to make objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import seunet
from seunet.models import ModelCard

COLORS = ((255, 255, 255), (60, 20, 160))


def dark_disc_model(folder: Path, mpp: float = 0.25) -> Path:
    """Write a SEUNet of two levels that says "nucleus" where an image is dark."""
    torch.manual_seed(0)
    model = seunet.create_model("seunet", widths=(10, 20), classes=2, preset="geometric")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    random = np.random.default_rng(0)
    for _ in range(120):
        pixels = np.stack([discs(48, 48, random) for _ in range(4)])
        images = torch.from_numpy(pixels.transpose(0, 3, 1, 2)).float() / 255
        loss = model.loss(model(images), (images.mean(1) < 0.6).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.card = ModelCard(mpp=mpp, class_names=("background", "nucleus"), class_colors=COLORS, instances=True)
    model.eval().save_pretrained(folder)
    return folder


def discs(height_px: int, width_px: int, random: np.random.Generator, radius_px: float = 5.0) -> np.ndarray:
    """Dark discs on pale pink, [height, width, 3]."""
    pixels = np.full((height_px, width_px, 3), (235, 190, 215), dtype=np.float64)
    rows, columns = np.mgrid[:height_px, :width_px]
    for _ in range(max(1, height_px * width_px // 250)):
        x, y = random.uniform(0, width_px), random.uniform(0, height_px)
        inside = (columns - x) ** 2 + (rows - y) ** 2 < (radius_px * random.uniform(0.7, 1.2)) ** 2
        pixels[inside] = (90, 50, 130)
    return np.clip(pixels + random.normal(0, 4, pixels.shape), 0, 255).astype(np.uint8)
