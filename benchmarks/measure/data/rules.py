"""What other rules for outlines would have given, on the files with original outlines."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.path import Path as Outline
from numpy.typing import NDArray
from PIL import Image

from seunet.data.formats import parse_annotation
from seunet.maths import outside_distance, ring_pixels

Rule = Callable[[NDArray[np.float64], int], NDArray[np.bool_]]


def rule_figures(data: Path, names: dict[str, str]) -> dict[str, Any]:
    """Mean and lowest IoU by rule; `names` maps an image to its split."""
    rules: dict[str, Rule] = {"ours": _ours, "half a pixel off": _half_off, "even–odd, edge left out": _even_odd}
    overlap: dict[str, list[float]] = {name: [] for name in rules}
    farthest = 0.0
    for name, split in names.items():
        base = data / "monuseg" / split
        text = gzip.decompress((base / "annotations" / f"{name}.xml.gz").read_bytes())
        label = np.asarray(Image.open(base / "labels_inst" / f"{name}.png")) > 0
        rings = [region.ring for region in parse_annotation(text, name).regions if len(region.ring) > 2]
        farthest = max(farthest, *(float(outside_distance(ring, *label.shape).max()) for ring in rings))
        for rule, paint in rules.items():
            mask = np.zeros_like(label)
            for ring in rings:
                mask |= paint(ring, label.shape[0])
            overlap[rule].append(float((mask & label).sum() / (mask | label).sum()))
    figures: dict[str, Any] = {
        rule: {"mean_iou": round(sum(values) / len(values), 4), "lowest_iou": round(min(values), 4)}
        for rule, values in overlap.items()
    }
    return figures | {"farthest_vertex_beyond_the_image_px": round(farthest, 2)}


def _ours(ring: NDArray[np.float64], size_px: int) -> NDArray[np.bool_]:
    mask = np.zeros((size_px, size_px), dtype=np.bool_)
    row, column, covered = ring_pixels(ring, size_px, size_px)
    mask[row : row + covered.shape[0], column : column + covered.shape[1]] = covered
    return mask


def _half_off(ring: NDArray[np.float64], size_px: int) -> NDArray[np.bool_]:
    """Centres at (c + ½, r + ½)."""
    return _ours(ring - 0.5, size_px)


def _even_odd(ring: NDArray[np.float64], size_px: int) -> NDArray[np.bool_]:
    """matplotlib's test of points in paths."""
    mask = np.zeros((size_px, size_px), dtype=np.bool_)
    left, top = np.clip(np.floor(ring.min(axis=0)), 0, size_px - 1).astype(int)
    right, bottom = np.clip(np.ceil(ring.max(axis=0)), 0, size_px - 1).astype(int)
    rows, columns = np.mgrid[top : bottom + 1, left : right + 1]
    inside = Outline(ring).contains_points(np.stack([columns.ravel(), rows.ravel()], axis=1))
    mask[top : bottom + 1, left : right + 1] = inside.reshape(rows.shape)
    return mask
