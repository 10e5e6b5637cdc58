"""One image at several magnifications: what is found in it when none of them is stated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.evaluation.figures.style import QUIET, new_figure
from seunet.evaluation.page import Block, Heading, Picture, Table, Text
from seunet.images.image import ArrayImage, RgbArray
from seunet.maths.rescaling import rescale
from seunet.models.unet_skeleton import ScaleUNet
from seunet.results.find_objects import objects
from seunet.results.label_plane import ArrayPlane
from seunet.results.legend import shades
from seunet.segmentation.found import Segmentation
from seunet.segmentation.one_file import frame_for
from seunet.segmentation.segment_array import segment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES: Final = (0.5, 1.0, 2.0)
OUTLINE: Final = "#00c853"
PICTURE_PX: Final = (1900, 900)


@dataclass(frozen=True)
class Shown:
    """The image at one magnification and what was found in it."""

    scale: float
    pixels: RgbArray
    found: Segmentation
    objects: int
    share: float
    """Of the area that is not background."""
    surest: NDArray[np.uint8]
    """The surest head at each pixel when the model is blind to the scale."""
    heads: tuple[float, ...]
    """Of the pixels of objects, the share in which each head was the surest."""
    seconds: float


def at_scales(
    image: RgbArray, model: ScaleUNet, scales: Sequence[float] = SCALES, clock: Callable[[], float] = time.monotonic
) -> list[Shown]:
    """Segment `image` rescaled by each of `scales`, with no mpp stated."""
    return [_shown(rescaled(image, scale), scale, model, clock) for scale in scales]


def rescaled(image: RgbArray, scale: float) -> RgbArray:
    """The image as another microscope would show it."""
    planes = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float()
    found = rescale(planes, scale, antialias=True)[0].permute(1, 2, 0).round().clamp(0, 255)
    return found.to(torch.uint8).numpy()


def _shown(pixels: RgbArray, scale: float, model: ScaleUNet, clock: Callable[[], float]) -> Shown:
    started = clock()
    found = segment(pixels, model)
    frame = frame_for(ArrayImage(pixels), model, found.plan)
    # Specks are specks at every magnification: what is left out is as large in the tissue, not in pixels.
    smallest = max(1, round(10 * scale**2))
    rim = None if found.rim is None else ArrayPlane(found.rim.astype(np.uint8))
    count = sum(1 for _ in objects(ArrayPlane(found.labels), frame, min_area_px=smallest, rim=rim))
    seconds = clock() - started
    surest = segment(pixels, model, scale="native", fusion="p_ens").heads
    inside = surest[found.labels != (frame.background or 0)]
    won = np.bincount(inside, minlength=model.heads) / max(1, inside.size)
    share = float((found.labels != (frame.background or 0)).mean())
    return Shown(scale, pixels, found, count, share, surest, tuple(won.tolist()), seconds)


def page(title: str, source: str, shown: Sequence[Shown], figures: Path) -> list[Block]:
    """The page of a demonstration; its pictures belong in `figures`."""
    return [
        Heading(title, 1),
        Text(source),
        counts_table(shown),
        *(block for one in shown for block in _blocks(one, figures)),
    ]


def counts_table(shown: Sequence[Shown]) -> Table:
    """The magnifications side by side."""
    rows = [
        ["pixels", *(f"{one.pixels.shape[1]} × {one.pixels.shape[0]}" for one in shown)],
        ["objects", *(str(one.objects) for one in shown)],
        ["area that is not background", *(f"{100 * one.share:.1f} %" for one in shown)],
        ["µm per pixel, from the pixels", *(_resolution(one) for one in shown)],
        ["surest head in the objects", *(_most(one) for one in shown)],
        ["time", *(f"{one.seconds:.1f} s" for one in shown)],
    ]
    return Table(["", *(f"{one.scale:g} ×" for one in shown)], rows)


def _resolution(one: Shown) -> str:
    mpp = one.found.estimated_mpp
    return "unknown" if mpp is None else f"{mpp:.2g}"


def _most(one: Shown) -> str:
    best = int(np.argmax(one.heads))
    return f"{best + 1} ({100 * one.heads[best]:.0f} %)"


def _blocks(one: Shown, figures: Path) -> list[Block]:
    caption = (
        f"{one.scale:g} ×: {one.objects} objects. Right: the surest head with pixels and filters as they are, from "
        "fine (1) to coarse (5), and its share of the objects."
    )
    draw = partial(figure, one)
    return [Heading(f"{one.scale:g} ×"), Picture(figures / f"scale-{one.scale:g}.png", caption, draw)]


def figure(one: Shown) -> Figure:
    """The outlines on the image, and the head that was the surest at every pixel."""
    drawn = new_figure(*PICTURE_PX)
    left, right = drawn.subplots(1, 2)
    left.imshow(one.pixels)
    if one.found.labels.any():
        # Drawn on the paper, not in the pixels: lines of one width at every magnification.
        left.contour(one.found.labels > 0, levels=[0.5], colors=[OUTLINE], linewidths=0.7)
    left.set_title(f"{one.objects} objects", color=QUIET)
    colors = (255 * np.array(shades(len(one.heads)))[:, :3]).astype(np.uint8)
    right.imshow(colors[one.surest], interpolation="nearest")
    for number, (color, share) in enumerate(zip(shades(len(one.heads)), one.heads, strict=True), start=1):
        right.plot([], [], "s", color=color, label=f"head {number}: {100 * share:.0f} %")
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for axes in (left, right):
        axes.set_axis_off()
    return drawn
