"""What is learnt over time: the weights of the heads and σ, from the log of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from seunet.errors import InputError
from seunet.evaluation.figures.style import new_figure, open_frame
from seunet.results.legend import shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_PX, HEIGHT_PX = 1600, 1500


class Course(NamedTuple):
    """η̃ at each step, [steps, γ], and σ at each validation, [times, layers, γ] (empty for a model without σ)."""

    steps: list[int]
    head_weights: list[list[float]]
    sigma_steps: list[int]
    sigmas: list[list[list[float]]]


def course(rows: Iterable[dict[str, Any]], where: str) -> Course:
    """The numbers of a log (`training.journal.rows`)."""
    found = Course([], [], [], [])
    for row in rows:
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
