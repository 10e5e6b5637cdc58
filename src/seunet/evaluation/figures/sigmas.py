"""σ of every layer and scale with the bounds it is trained in (the paper's figure 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seunet.evaluation.figures.style import new_figure, open_frame
from seunet.results.pictures.legend import shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_PX, HEIGHT_PX = 1600, 880


def sigmas_figure(sigma: dict[str, Any], title: str) -> Figure:
    """`sigma` is the field of that name of a report: {"sigmas", "lower", "upper"}, each [layers][scales], and "mode".

    Free σ have no bounds; fixed ones are drawn in the middle of theirs.
    """
    figure = new_figure(WIDTH_PX, HEIGHT_PX)
    axis = figure.add_subplot()
    layers = range(1, len(sigma["sigmas"]) + 1)
    if not sigma["mode"].startswith("free"):
        # Intervals that meet share a line: each bound is drawn once, over the width of its layer.
        for layer, lower, upper in zip(layers, sigma["lower"], sigma["upper"], strict=True):
            bounds = sorted({round(bound, 6) for bound in (*lower, *upper)})
            axis.hlines(bounds, layer - 0.5, layer + 0.5, colors="black", linestyles="dashed", linewidth=0.9)
    scales = len(sigma["sigmas"][0])
    for number, color in enumerate(shades(scales)):
        values = [row[number] for row in sigma["sigmas"]]
        axis.plot(layers, values, color=color, marker="o", linewidth=1.6, label=f"σ {number + 1}")
    open_frame(axis)
    axis.grid(False, axis="y")
    axis.set_xticks(list(layers))
    axis.set_xlim(0.5, len(layers) + 0.5)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("layer")
    axis.set_ylabel("σ in pixels of the layer's map")
    axis.set_title(title, loc="left", fontweight="bold")
    figure.legend(loc="outside right center", frameon=False, reverse=True)
    return figure
