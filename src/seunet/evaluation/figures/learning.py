"""How runs went: loss and validation IoU over the steps, read from their logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seunet.storage.jsonl import rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOOTHED_OVER = 25
"""Steps; single batches differ by more than what is learnt in between."""


def training_curves(logs: Mapping[str, Path], fusion: str = "p_ens") -> Figure:
    """Left the loss, right the IoU on held-out images: the fusion as a line, single heads as thin ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (name, path) in enumerate(logs.items()):
        color = f"C{place}"
        steps, losses, validations = _curves(path)
        left.plot(steps, _smooth(losses), color=color, label=name, linewidth=1.5)
        at = [row["step"] for row in validations]
        heads = np.array([row["validation"]["heads"] for row in validations])
        right.plot(at, heads, color=color, linewidth=0.5, alpha=0.5)
        right.plot(at, [row["validation"][fusion] for row in validations], color=color, label=name, linewidth=1.8)
    left.set_ylabel(f"loss, mean of {SMOOTHED_OVER} steps")
    left.set_ylim(bottom=0)
    left.legend(frameon=False)  # the colours are those of both; on the right the lines are everywhere
    right.set_ylabel("IoU on held-out images")
    for panel in (left, right):
        panel.set_xlabel("step")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    return figure


def _curves(path: Path) -> tuple[list[int], list[float], list[dict[str, Any]]]:
    steps, losses, validations = [], [], []
    for row in rows(path):
        if "validation" in row:
            validations.append(row)
        else:
            steps.append(row["step"])
            losses.append(row["loss"])
    return steps, losses, validations


def _smooth(values: list[float]) -> list[float]:
    """The mean of the last steps at each step."""
    sums = np.cumsum([0.0, *values])
    first = np.maximum(np.arange(len(values)) + 1 - SMOOTHED_OVER, 0)
    last = np.arange(len(values)) + 1
    return list((sums[last] - sums[first]) / (last - first))
