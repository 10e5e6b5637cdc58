"""Estimated against true scale, and how far off the estimates are at each scale beside what they promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seunet.evaluation import scale_label
from seunet.evaluation.figures import COLORS, QUIET, new_figure, open_frame, scale_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ScalePoint(NamedTuple):
    """One image at one scale."""

    true: float
    estimated: float
    low: float
    high: float


def scale_figure(points: Sequence[ScalePoint], title: str) -> Figure:
    """Left every estimate with its interval, right errors by scale."""
    figure = new_figure(1920, 960)
    left, right = figure.subplots(1, 2)
    _estimates(left, points)
    _errors(right, points)
    figure.suptitle(title, color=QUIET)
    return figure


def _estimates(axis: Axes, points: Sequence[ScalePoint]) -> None:
    scales = sorted({point.true for point in points})
    ends = np.array([scales[0] / 1.2, scales[-1] * 1.2])
    axis.fill_between(ends, ends / 1.25, ends * 1.25, color="#eeeeee", linewidth=0, label="within 25 %")
    axis.plot(ends, ends, color=QUIET, linewidth=1)
    # Images beside each other within a scale, so that intervals can be told apart.
    order = {scale: sorted(point for point in points if point.true == scale) for scale in scales}
    for each in order.values():
        places = [point.true * 2 ** (0.16 * ((number + 0.5) / len(each) - 0.5)) for number, point in enumerate(each)]
        axis.vlines(places, [p.low for p in each], [p.high for p in each], color=COLORS[4], linewidth=0.8)
        axis.plot(places, [p.estimated for p in each], "o", color=COLORS[0], markersize=2.2)
    open_frame(axis)
    scale_axis(axis, scales, [scale_label(scale) for scale in scales])
    axis.set_yscale("log", base=2)
    axis.set_yticks(scales[::2], [scale_label(scale) for scale in scales[::2]])
    axis.set_yticks([], minor=True)
    axis.set_xlabel("true scale s (training scale = 1)")
    axis.set_ylabel("estimated, with its 90 % interval")
    axis.legend(frameon=False, loc="upper left")


def _errors(axis: Axes, points: Sequence[ScalePoint]) -> None:
    scales = sorted({point.true for point in points})
    by_scale = [[point for point in points if point.true == scale] for scale in scales]
    factors = [[max(p.estimated / p.true, p.true / p.estimated) for p in each] for each in by_scale]
    axis.plot(scales, [float(np.median(each)) for each in factors], color=COLORS[0], label="median error")
    axis.plot(
        scales, [float(np.quantile(each, 0.9)) for each in factors], color=COLORS[1], label="90 % of errors below"
    )
    promised = [float(np.median([(p.high / p.low) ** 0.5 for p in each])) for each in by_scale]
    axis.plot(scales, promised, "--", color=COLORS[4], label="half the interval, median")
    axis.axhline(1.25, color=QUIET, linewidth=0.8, linestyle=":")
    open_frame(axis)
    scale_axis(axis, scales, [scale_label(scale) for scale in scales])
    axis.set_xlabel("true scale s (training scale = 1)")
    axis.set_ylabel("error as a factor")
    axis.set_ylim(bottom=1)
    axis.legend(frameon=False)
