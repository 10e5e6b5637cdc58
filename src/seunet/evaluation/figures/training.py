"""What is learnt over time, from the logs of training runs: loss and validation IoU, weights of the heads and σ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seunet.errors import InputError
from seunet.evaluation.figures.style import new_figure, open_frame
from seunet.results.pictures.legend import shades
from seunet.storage.jsonl import rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_PX, HEIGHT_PX = 1600, 1500

SMOOTHED_OVER = 25
"""Steps; single batches differ by more than what is learnt in between."""


class Course(NamedTuple):
    """η̃ at each step, [steps, γ], and σ at each validation, [times, layers, γ] (empty for a model without σ)."""

    steps: list[int]
    head_weights: list[list[float]]
    sigma_steps: list[int]
    sigmas: list[list[list[float]]]


def course(log: Iterable[dict[str, Any]], where: str) -> Course:
    """The numbers of a log (`storage.jsonl.rows`)."""
    found = Course([], [], [], [])
    for row in log:
        if "head_weights" in row:
            found.steps.append(row["step"])
            found.head_weights.append(row["head_weights"])
        elif row.get("sigmas") is not None:
            found.sigma_steps.append(row["step"])
            found.sigmas.append(row["sigmas"])
    if not found.steps:
        raise InputError(f"{where}: holds no steps of training; give the log.jsonl of a run")
    return found


def training_figure(shown: Course, title: str) -> Figure:
    """η̃ above; below it σ of the first, the deepest and the last layer, where there are σ."""
    parts = 2 if shown.sigmas else 1
    figure = new_figure(WIDTH_PX, HEIGHT_PX if parts == 2 else HEIGHT_PX // 2)
    figure.suptitle(title, fontweight="bold")
    areas = figure.subfigures(parts, 1, squeeze=False)[:, 0]
    axis = areas[0].subplots()
    scales = len(shown.head_weights[0])
    _draw(axis, shown.steps, shown.head_weights, "head")
    axis.set_ylabel("weight η̃ of the head in the loss")
    lowest = 1 / (2 * scales)
    axis.axhline(lowest, color="black", linestyle="dashed", linewidth=0.9, label=f"lowest, 1/{2 * scales}")
    axis.set_xlim(0, shown.steps[-1])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("step")
    areas[0].legend(loc="outside right center", frameon=False, reverse=True)
    if shown.sigmas:
        layers = len(shown.sigmas[0])
        chosen = sorted({0, (layers - 2) // 2, (layers - 1) // 2, layers - 1})
        for axis, layer in zip(areas[1].subplots(1, len(chosen), squeeze=False)[0], chosen, strict=True):
            _draw(axis, shown.sigma_steps, [row[layer] for row in shown.sigmas], "σ", marker=".")
            axis.set_title(f"σ of layer {layer + 1} of {layers}", fontsize=11)
            axis.set_xlabel("step")
            axis.set_xlim(0, shown.steps[-1])
            axis.set_ylim(bottom=0)
    return figure


def _draw(axis: Axes, steps: list[int], values: list[list[float]], name: str, marker: str = "") -> None:
    for number, color in enumerate(shades(len(values[0]))):
        line = [row[number] for row in values]
        axis.plot(steps, line, color=color, linewidth=1.8, marker=marker, label=f"{name} {number + 1}")
    open_frame(axis)


def training_curves(logs: Mapping[str, Path], fusion: str = "p_ens") -> Figure:
    """Left the loss, right the IoU on held-out images: the fusion as a line, single heads as thin ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (name, path) in enumerate(logs.items()):
        color = f"C{place}"
        log = list(rows(path))
        validations, steps = ([row for row in log if ("validation" in row) == wanted] for wanted in (True, False))
        losses = _smooth([row["loss"] for row in steps])
        left.plot([row["step"] for row in steps], losses, color=color, label=name, linewidth=1.5)
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


def _smooth(values: list[float]) -> list[float]:
    """The mean of the last steps at each step."""
    sums = np.cumsum([0.0, *values])
    first = np.maximum(np.arange(len(values)) + 1 - SMOOTHED_OVER, 0)
    last = np.arange(len(values)) + 1
    return list((sums[last] - sums[first]) / (last - first))
