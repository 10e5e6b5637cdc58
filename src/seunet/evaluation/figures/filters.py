"""The filters of the paper's Appendix B, and the error matrices of Appendix C: of a filter, and of a whole network.

matplotlib is imported inside the functions and used without pyplot: importing this file loads no plotting library, and
drawing touches no global state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from seunet.evaluation.figures.style import QUIET, hide_frame, hide_spines, new_figure
from seunet.evaluation.filter_study import FilterStudy, ScaleMatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage

WIDTH_PX: Final = 1920
HEIGHT_PX: Final = 2400
_COLUMNS: Final = 4
_TOP_ROWS: Final = 0.8
"""The height of the filters' row in rows of matrices."""
_LIMITS_PERCENT: Final = (0.01, 30.0)
_RED: Final = "#d62728"

SHOWN_SCALES: Final = (0.25, 0.5, 0.5 * 2**0.5, 0.5 * 2**0.75, 2**0.25, 2**0.5, 2.0, 4.0)
_REPORT_LIMITS_PERCENT: Final = (1.0, 300.0)


def filters_figure(study: FilterStudy) -> Figure:
    """Filters and image in the top row, one γ×γ matrix for each s below."""
    figure = new_figure(WIDTH_PX, HEIGHT_PX)
    rows = -(-len(study.matches) // _COLUMNS)
    parts = figure.add_gridspec(2, 1, height_ratios=(_TOP_ROWS, rows))
    _draw_filters(figure.add_subfigure(parts[0]), study)
    draw_matches(figure.add_subfigure(parts[1]), study.matches, rows)
    return figure


def errors_figure(document: dict[str, Any], variant: str, scales: Sequence[float] = SHOWN_SCALES) -> Figure:
    """The γ×γ matrices of an equivariance report at up to eight scales; the first ones where it has none of these."""
    wanted = [row for row in document["errors"] if any(abs(row["scale"] / scale - 1) < 1e-6 for scale in scales)]
    rows = wanted or document["errors"][:8]
    sigmas = tuple(document["sigmas"])
    matches = [ScaleMatch(row["scale"], sigmas, torch.tensor(row[variant]["matrix"])) for row in rows]
    lines = -(-len(matches) // 4)
    figure = new_figure(1920, 560 * lines + 240)
    what = f"of {document['model']['name']}'s logits on {document['data']['windows']} windows"
    draw_matches(figure, matches, lines, what, _REPORT_LIMITS_PERCENT)
    return figure


def on_common_grid(filters: tuple[Tensor, ...]) -> Tensor:
    """Filters of odd sizes → [filters, τ, τ] of the largest size, centred; NaN where a filter has ended."""
    reach = max(len(weights) // 2 for weights in filters)
    return torch.stack(
        [pad(weights, [reach - len(weights) // 2] * 4, value=float("nan")) for weights in filters],
    )


def _draw_filters(area: SubFigure, study: FilterStudy) -> None:
    from matplotlib.patches import Rectangle

    area.suptitle(
        "One filter at several sizes: the same random weights α, only σ differs\n"
        "violet above zero, orange below, relative to each filter's largest value",
        fontweight="bold",
    )
    axes = area.subplots(1, len(study.filters) + 1)
    grid = on_common_grid(study.filters)
    middle = len(grid[0]) // 2
    for axis, sigma, weights, picture in zip(axes, study.sigmas, study.filters, grid, strict=False):
        size = len(weights)
        # A filter's values fall with 1/σ²: each is shown relative to its own largest, so that the shapes compare.
        axis.imshow((picture / weights.abs().max()).numpy(), cmap="PuOr", vmin=-1, vmax=1)
        corner = middle - size / 2
        axis.add_patch(Rectangle((corner, corner), size, size, fill=False, edgecolor=QUIET, clip_on=False))
        axis.set_title(f"σ = {sigma:g}   τ = {size} px", fontsize=11)
        axis.set_facecolor("#eeeeee")
        hide_frame(axis)
    height, width = study.image.shape[:2]
    axes[-1].imshow(study.image.numpy())
    axes[-1].set_title(f"the image, {width}×{height} px", fontsize=11)
    hide_frame(axes[-1])


def draw_matches(
    area: Figure | SubFigure,
    matches: Sequence[ScaleMatch],
    rows: int,
    on: str = "on this image",
    limits_percent: tuple[float, float] = _LIMITS_PERCENT,
) -> None:
    """A matrix for each s in rows of four, with one colour bar."""
    area.suptitle(
        f"Equivariance error Δ in % {on} rescaled by s, for every pair of σ\n"
        "red box: the best pair; its ratio (σ on the rescaled image / σ on the original) should be s",
        fontweight="bold",
    )
    axes = area.subplots(rows, _COLUMNS, squeeze=False)
    for axis in axes.flat[len(matches) :]:
        axis.set_axis_off()
    shown = [_draw_match(axis, match, limits_percent) for axis, match in zip(axes.flat, matches, strict=False)]
    for axis in axes[:, 0]:
        axis.set_ylabel("σ on the original image", labelpad=6)
    for axis in axes[-1]:
        axis.set_xlabel("σ on the rescaled image")
    bar = area.colorbar(shown[0], ax=axes, location="bottom", shrink=0.4, aspect=50, pad=0.02, format="%g")
    bar.set_label("Δ in % (logarithmic)")


def _draw_match(axis: Axes, match: ScaleMatch, limits_percent: tuple[float, float]) -> AxesImage:
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    percent = match.errors * 100
    shown = axis.imshow(percent.numpy(), cmap="cividis", norm=LogNorm(*limits_percent, clip=True))
    dark = math.sqrt(limits_percent[0] * limits_percent[1])
    for row, values in enumerate(percent.tolist()):
        for column, value in enumerate(values):
            ink = "white" if value < dark else "black"
            axis.text(column, row, percent_label(value), ha="center", va="center", color=ink, fontsize=11)
    row, column = match.best
    axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=_RED, linewidth=3, clip_on=False))
    labels = [f"{sigma:.3g}" for sigma in match.sigmas]
    axis.set_xticks(range(len(labels)), labels)
    axis.set_yticks(range(len(labels)), labels)
    axis.tick_params(length=0, colors=QUIET)
    axis.set_title(f"s = {round(match.scale, 2):g} · best pair {match.ratio:.2f}", fontsize=12)
    hide_spines(axis)
    return shown


def percent_label(value: float) -> str:
    """Two digits that fit a cell.

    >>> [percent_label(value) for value in (0.0312, 2.14, 13.4)]
    ['0.03', '2.1', '13']
    """
    return f"{value:.2f}" if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
