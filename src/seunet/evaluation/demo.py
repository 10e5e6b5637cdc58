"""One image at several magnifications, none of them stated: what `seunet segment` finds in each, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.evaluation.figures.style import QUIET, hide_frame, new_figure
from seunet.evaluation.page import Block, Heading, Picture, Table, Text
from seunet.images.image import Image, RgbArray
from seunet.images.pillow_codec import encode_png
from seunet.images.sandboxed import open_guarded
from seunet.maths.rescaling import rescale_pixels
from seunet.results.cohort import RUN_NAME
from seunet.results.frame import NOT_ANALYSED
from seunet.segmentation.inputs import Item
from seunet.segmentation.one_file import segment_file
from seunet.segmentation.options import Choices
from seunet.storage.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES: Final = {"quarter": 0.25, "half": 0.5, "whole": 1.0, "double": 2.0}
SAMPLE: Final = "OS-1-detail.ome.tif"
OUTLINE: Final = "#00e05a"
PICTURE_PX: Final = (2200, 1250)
DETAIL: Final = (0.36, 0.36, 0.24)
"""Left, top and side of the part that is shown enlarged, as fractions of the image."""


class Sample(NamedTuple):
    """Pixels and their µm."""

    pixels: RgbArray
    mpp: float


@dataclass(frozen=True)
class Shown:
    """The image at one magnification and what was found in it."""

    scale: float
    true_mpp: float
    pixels: RgbArray
    nuclei: NDArray[np.bool_]
    """Where something was found."""
    objects: int
    estimated_mpp: float | None
    seconds: float

    @property
    def share(self) -> float:
        """Of the area, what was found."""
        return float(self.nuclei.mean())


def sample() -> Sample:
    """The H&E image of the package."""
    with as_file(files("seunet") / "samples" / SAMPLE) as path, closing(open_guarded(path)) as image:
        assert image.mpp is not None, "the sample states its resolution"
        return Sample(_whole(image), image.mpp.mean)


def _whole(image: Image) -> RgbArray:
    return image.read(0, 0, 0, image.levels[0].width_px, image.levels[0].height_px)


def at_scales(image: Sample, model: str, out: Path, tell: Callable[[str], None] = lambda name: None) -> list[Shown]:
    """Write `image` to OUT/images in each size, without a resolution, and segment those files into OUT."""
    shown = []
    for name, scale in SCALES.items():
        tell(name)
        pixels = rescale_pixels(image.pixels, scale, antialias=True)
        path = out / "images" / f"{name}.png"
        write_bytes(path, encode_png(pixels))
        segment_file(Item(path, None, name), out, Choices(model=model, overwrite=True))
        shown.append(_shown(pixels, scale, image.mpp / scale, out / name))
    return shown


def _shown(pixels: RgbArray, scale: float, true_mpp: float, folder: Path) -> Shown:
    """Read from the files that everyone gets."""
    run: dict[str, Any] = json.loads((folder / RUN_NAME).read_text())
    with closing(open_guarded(folder / "labels.tif")) as labels:
        codes = _whole(labels)[..., 0]
    return Shown(
        scale,
        true_mpp,
        pixels,
        (codes > 0) & (codes != NOT_ANALYSED),
        sum(run["results"]["objects"].values()),
        (run["scale"]["estimate"] or {}).get("mpp"),
        run["clock"]["seconds"],
    )


def agreement(one: Shown, whole: Shown) -> float:
    """IoU of what was found with what was found in the image as it is, on the pixels of that."""
    rows, columns = (
        (np.arange(new) * old // new).astype(np.int64)
        for new, old in zip(whole.nuclei.shape, one.nuclei.shape, strict=True)
    )
    found = one.nuclei[np.ix_(rows, columns)]
    union = int((found | whole.nuclei).sum())
    return float((found & whole.nuclei).sum() / union) if union else 1.0


def page(title: str, source: str, after: str, shown: Sequence[Shown], figures: Path) -> list[Block]:
    """The page of a demonstration; its picture belongs in `figures`."""
    caption = "Above the whole image, below a part of it enlarged, at each size; outlines as found, told nothing."
    return [
        Heading(title, 1),
        Text(source),
        Picture(figures / "sizes.png", caption, partial(figure, shown)),
        counts_table(shown),
        Text(after),
    ]


def counts_table(shown: Sequence[Shown]) -> Table:
    """The magnifications side by side."""
    whole = next(one for one in shown if one.scale == 1)
    rows = [
        ["pixels", *(f"{one.pixels.shape[1]} × {one.pixels.shape[0]}" for one in shown)],
        ["objects", *(str(one.objects) for one in shown)],
        ["area of objects", *(f"{100 * one.share:.1f} %" for one in shown)],
        ["IoU with 1 ×", *(f"{100 * agreement(one, whole):.1f} %" for one in shown)],
        ["µm per pixel, estimated", *(_resolution(one.estimated_mpp) for one in shown)],
        ["µm per pixel, true", *(_resolution(one.true_mpp) for one in shown)],
        ["time", *(f"{one.seconds:.1f} s" for one in shown)],
    ]
    return Table(["", *(f"{one.scale:g} ×" for one in shown)], rows)


def _resolution(mpp: float | None) -> str:
    return "unknown" if mpp is None else f"{mpp:.3f}"


def figure(shown: Sequence[Shown]) -> Figure:
    """A column per size: the whole image, and a part of it."""
    drawn = new_figure(*PICTURE_PX)
    axes = drawn.subplots(2, len(shown), squeeze=False)
    for column, one in enumerate(shown):
        height, width = one.nuclei.shape
        across, down = one.pixels.shape[1], one.pixels.shape[0]
        left, top, side = DETAIL
        for row, line_width in ((0, 0.5), (1, 1.4)):
            axis = axes[row, column]
            axis.imshow(one.pixels, interpolation="nearest", extent=(-0.5, width - 0.5, height - 0.5, -0.5))
            if one.nuclei.any():
                # Drawn on the paper, not in the pixels: lines of one width at every magnification.
                axis.contour(one.nuclei, levels=[0.5], colors=[OUTLINE], linewidths=line_width)
            hide_frame(axis)
        axes[1, column].set_xlim(left * width, (left + side) * width)
        axes[1, column].set_ylim((top + side) * height, top * height)
        axes[0, column].set_title(f"{one.scale:g} ×, {across} × {down} px", fontweight="bold")
        told = f"{one.objects} objects, {_resolution(one.estimated_mpp)} µm estimated ({one.true_mpp:.3f} true)"
        axes[0, column].set_xlabel(told, color=QUIET, fontsize=10)
    return drawn
