"""Prepared sets and saved models for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import seunet as package
from seunet.models import ScaleUNet
from support.cli import seunet
from support.datasets import class_map, write_lab, write_monuseg


def prepared_nuclei(root: Path, train: int = 2, test: int = 2) -> Path:
    """Two classes: 64-pixel images in windows of 32, nine an image."""
    source = write_monuseg(root / "src", train=train, test=test)
    assert seunet("data", "prepare", "monuseg", source, root / "set", "--window", 32, "--stride", 16).code == 0
    return root / "set"


def prepared_tissue(root: Path) -> Path:
    """Three classes and pixels to ignore, all in the split train."""
    source = write_lab(root / "lab", patients=2, images_each=1)
    options = ["--class-map", class_map(root / "map.csv"), "--window", 24, "--min-annotated", 0]
    assert seunet("data", "prepare", "folder", source, root / "tissue", *options).code == 0
    return root / "tissue"


def saved_model(folder: Path, name: str = "seunet", seed: int = 0, **options: Any) -> ScaleUNet:
    """A small model with statistics that are not those of a fresh one, saved and loaded."""
    torch.manual_seed(seed)
    model = package.create_model(name, **{"widths": (10, 20), **options})
    model.train()
    with torch.no_grad():
        for _ in range(20):
            model(torch.rand(2, 3, 32, 32))
    model.save_pretrained(folder)
    return package.load(folder)
