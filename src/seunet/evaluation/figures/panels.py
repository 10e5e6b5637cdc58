"""One window at several scales with truth and predictions (the paper's Appendix D)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from seunet.data.windows import WindowDataset
from seunet.evaluation.confusions import counts
from seunet.evaluation.estimated_scale import estimate_at, estimate_facts, estimator_for, training_mpp
from seunet.evaluation.figures.style import hide_frame, new_figure
from seunet.evaluation.predictors import Way
from seunet.evaluation.test_scales import scale_label
from seunet.maths.confusion import headline_iou
from seunet.maths.fusion import predicted_classes
from seunet.maths.losses import IGNORE_INDEX
from seunet.maths.rescaling import rescale, rescale_mask
from seunet.models.sureness import second_opinion
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.estimator import ScaleEstimator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_SCALES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
CELL_PX: Final = 400
TOP_PX: Final = 120
TITLE_LETTERS: Final = 26
"""What fits above a column, in one line."""
IGNORE_COLOR: Final = (255, 255, 255)
"""Of pixels that nobody labelled; the classes of a set may have any grey."""


@dataclass(frozen=True)
class Panel:
    """A window at one scale: image uint8 [H, W, 3], mask [H, W], and for each prediction its classes and IoU."""

    scale: float
    image: Tensor
    mask: Tensor
    predictions: tuple[tuple[str, Tensor, float], ...]


def panel(
    model: ScaleUNet,
    windows: WindowDataset,
    number: int,
    scale: float,
    ways: Sequence[Way],
    fusion: str | None,
    antialias: bool = False,
    estimator: ScaleEstimator | None = None,
) -> Panel:
    """Window `number` at `scale`, predicted in each way and fused by `fusion` where there are several heads."""
    image, mask = _rescaled(windows, number, scale, antialias)
    found = []
    with torch.inference_mode():
        for way in ways:
            given: float | None = scale
            if way.estimates:
                sureness = second_opinion(model) if estimator is None else None
                used = estimator_for(model, estimator)
                seen = estimate_at(windows.whole(number), scale, used, antialias, sureness)
                given = estimate_facts(training_mpp(model, windows), seen)["scale"]
            probabilities = way.at_scale(model, given)(image)
            fusions = [fusion] if fusion is not None and probabilities.shape[1] > 1 else []
            iou = headline_iou(counts(probabilities, mask, fusions)[-1])
            name = f"{way.label}{fusions[0] if fusions else way.head_names(model)[-1]}"
            found.append((name, predicted_classes(probabilities, fusions)[-1, 0], iou))
    return Panel(scale, _pixels(image), mask[0], tuple(found))


def window_at(windows: WindowDataset, number: int, scale: float) -> tuple[Tensor, Tensor]:
    """Image uint8 [H, W, 3] and mask [H, W] of a window at `scale`."""
    image, mask = _rescaled(windows, number, scale, antialias=False)
    return _pixels(image), mask[0]


def _rescaled(windows: WindowDataset, number: int, scale: float, antialias: bool) -> tuple[Tensor, Tensor]:
    window = windows[number]
    return rescale(window.image[None], scale, antialias), rescale_mask(window.mask[None], scale)


def _pixels(image: Tensor) -> Tensor:
    return (image[0].permute(1, 2, 0) * 255).round().clamp(0, 255).to(torch.uint8)


def panels_figure(
    panels: Sequence[Panel], colors: Sequence[Sequence[int]], title: str, names: Sequence[str] = ()
) -> Figure:
    """One row per scale: the image, the truth, and each prediction with its IoU; more than two classes have a key."""
    columns = 2 + len(panels[0].predictions)
    figure = new_figure(max(columns * CELL_PX, 1200), len(panels) * CELL_PX + TOP_PX)
    figure.suptitle(title, fontweight="bold")
    axes = figure.subplots(len(panels), columns, squeeze=False)
    for row, (each, line) in enumerate(zip(panels, axes, strict=True)):
        shown: list[tuple[str, Any]] = [("image", each.image), ("truth", painted(each.mask, colors))]
        shown += [(name, painted(codes, colors)) for name, codes, _ in each.predictions]
        for axis, (name, picture) in zip(line, shown, strict=True):
            axis.imshow(picture.numpy(), interpolation="nearest")
            hide_frame(axis)
            if row == 0:
                axis.set_title(fill(name, TITLE_LETTERS), fontsize=11)
        height, width = each.mask.shape
        line[0].set_ylabel(f"s = {scale_label(each.scale)}\n{width}×{height} px", fontsize=11)
        best = max(iou for _, _, iou in each.predictions)
        for axis, (_, _, iou) in zip(line[2:], each.predictions, strict=True):
            weight = "bold" if iou == best and len(each.predictions) > 1 else "normal"
            axis.set_xlabel(f"{100 * iou:.1f}", fontsize=11, fontweight=weight)
    if len(names) > 2:
        _add_key(figure, {**dict(zip(names, colors, strict=True)), "not labelled": IGNORE_COLOR})
    return figure


def _add_key(figure: Figure, entries: Mapping[str, Sequence[int]]) -> None:
    from matplotlib.patches import Patch

    patches = []
    for name, (red, green, blue) in entries.items():
        patches.append(Patch(facecolor=(red / 255, green / 255, blue / 255), edgecolor="0.5", label=name))
    figure.legend(handles=patches, loc="outside lower center", ncols=3, frameon=False)


def painted(codes: Tensor, colors: Sequence[Sequence[int]]) -> Tensor:
    """Class codes in the colours of the set: [H, W] → uint8 [H, W, 3]; pixels to ignore in white."""
    table = torch.tensor([*colors, IGNORE_COLOR], dtype=torch.uint8)
    return table[torch.where(codes == IGNORE_INDEX, len(colors), codes).long()]
