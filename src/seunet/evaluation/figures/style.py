"""What the figures share.  matplotlib is loaded on first use and without pyplot: drawing touches no global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seunet.storage.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI: Final = 160
QUIET: Final = "#555555"
COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31")
"""Okabe and Ito's, which can be distinguished with any kind of colour vision."""


def new_figure(width_px: int, height_px: int) -> Figure:
    """An empty figure of this size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_px / DPI, height_px / DPI), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_png(figure: Figure, path: Path) -> None:
    """The figure as a PNG, whole or not at all."""
    with atomic_path(path) as part:
        figure.savefig(part, format="png", dpi=DPI)


def open_frame(axis: Axes) -> None:
    """Two spines and a faint grid: the lines are what is looked at."""
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axis.spines[side].set_color(QUIET)
    axis.tick_params(colors=QUIET)
    axis.grid(True, color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)


def hide_frame(axis: Axes) -> None:
    """Neither ticks nor spines: for pictures."""
    axis.set_xticks([])
    axis.set_yticks([])
    hide_spines(axis)


def hide_spines(axis: Axes) -> None:
    for spine in axis.spines.values():
        spine.set_visible(False)


def scale_axis(axis: Axes, scales: Sequence[float], labels: Sequence[str]) -> None:
    """A logarithmic axis with a tick at every scale and a name at every other."""
    axis.set_xscale("log", base=2)
    named = [label if place % 2 == 0 or len(labels) < 10 else "" for place, label in enumerate(labels)]
    axis.set_xticks(scales, named)
    axis.set_xticks([], minor=True)
    axis.set_xlabel("test scale s (training scale = 1)")
