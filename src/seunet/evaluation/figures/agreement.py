"""The areas of an agreement report: a dot per image, relative to the image as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seunet.evaluation.figures.style import COLORS, QUIET, new_figure, open_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREAD: Final = 0.24
HIGHEST: Final = 4.0
"""Ratios beyond are drawn at the edge."""


def agreement_figure(document: dict[str, Any]) -> Figure:
    """Columns of variants; what agrees within 20 % lies in the band."""
    figure = new_figure(1280, 800)
    axis = figure.add_subplot()
    names = [name for name, *_ in document["arguments"]["variants"]]
    found = {row["variant"]: row for row in document["scores"]}
    axis.axhspan(1 / 1.2, 1.2, color="#e8f1f8", zorder=0)
    axis.axhline(1, color=QUIET, linewidth=0.8)
    for place, name in enumerate(names):
        ratios = [row["variants"][name]["ratio"] for row in document["results"]]
        drawn = np.clip([HIGHEST if ratio is None else ratio for ratio in ratios], 1 / HIGHEST, HIGHEST)
        spread = np.linspace(-SPREAD, SPREAD, len(drawn)) if len(drawn) > 1 else np.zeros(len(drawn))
        outside = (drawn > 1.2) | (drawn < 1 / 1.2)
        for chosen, color in ((~outside, COLORS[0]), (outside, COLORS[1])):
            axis.scatter(place + spread[chosen], drawn[chosen], s=22, color=color, alpha=0.85, linewidths=0, zorder=3)
        share = found[name]["within_20_percent"]
        label = "" if share is None else f"{100 * share:.0f} % within 20 %"
        axis.text(place, HIGHEST * 1.06, label, ha="center", va="bottom", color=QUIET)
    axis.set_yscale("log", base=2)
    axis.set_ylim(1 / HIGHEST / 1.05, HIGHEST * 1.05)
    ticks = (0.25, 0.5, 1 / 1.2, 1, 1.2, 2, 4)
    axis.set_yticks(ticks, [f"{tick:.2g}" for tick in ticks])
    axis.set_yticks([], minor=True)
    axis.set_xticks(range(len(names)), [f"shrunk to {name}" if name in "½¼" else name for name in names])
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylabel("area of objects ÷ that in the image as it is")
    open_frame(axis)
    axis.grid(False, axis="x")
    axis.set_title(f"{len(document['results'])} images, told nothing", loc="left", pad=28)
    return figure
