"""One image at several magnifications, none of them stated: what `seunet segment` finds in each, side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.evaluation.demo_rival import shipped_rival, unpack_rival
from seunet.evaluation.figures.style import QUIET, hide_frame, new_figure
from seunet.evaluation.page import Block, Heading, Picture, Table, Text
from seunet.images.image import Image, RgbArray
from seunet.images.pillow_codec import encode_png
from seunet.images.sandboxed import open_guarded
from seunet.maths.rescaling import rescale_pixels
from seunet.progress import Progress, silent
from seunet.results.cohort import RUN_NAME
from seunet.results.frame import NOT_ANALYSED
from seunet.segmentation.inputs import Item
from seunet.segmentation.one_file import segment_file
from seunet.segmentation.options import Choices
from seunet.storage.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


@dataclass(frozen=True)
class System:
    """A network, and what it found at each size."""

    name: str
    shown: Sequence[Shown]
    made_by: dict[str, Any]
    """The model, or command, commit and config of results that were made before."""
    estimates: bool = True
    """Whether it looks for the magnification; one that does not takes every image as one at its own."""

    def agreement(self, one: Shown) -> float:
        """With what it found itself in the image as it is."""
        return agreement(one, next(other for other in self.shown if other.scale == 1))

    def figures(self, one: Shown) -> dict[str, Any]:
        """A size in numbers."""
        return {
            "scale": one.scale,
            "width_px": one.pixels.shape[1],
            "height_px": one.pixels.shape[0],
            "objects": one.objects,
            "area_share": round(one.share, 4),
            "iou_with_whole": round(self.agreement(one), 4),
            "estimated_mpp": one.estimated_mpp if self.estimates else None,
            "true_mpp": round(one.true_mpp, 4),
            "seconds": one.seconds,
        }


def sample() -> Sample:
    """The H&E image of the package."""
    with as_file(files("seunet") / "samples" / SAMPLE) as path, closing(open_guarded(path)) as image:
        assert image.mpp is not None, "the sample states its resolution"
        return Sample(_whole(image), image.mpp.mean)


def _whole(image: Image) -> RgbArray:
    return image.read(0, 0, 0, image.levels[0].width_px, image.levels[0].height_px)


def at_scales(
    image: Sample, choices: Choices, out: Path, progress: Progress = silent, stated: bool = False
) -> list[Shown]:
    """Write `image` to OUT/images in each size, without a resolution, and segment those files into OUT.

    `stated`: with the true resolution told; a network run at `scale="native"` uses it for the least object alone.
    """
    shown = []
    for number, (name, scale) in enumerate(SCALES.items()):
        progress(number, len(SCALES), name)
        pixels = rescale_pixels(image.pixels, scale, antialias=True)
        path = out / "images" / f"{name}.png"
        write_bytes(path, encode_png(pixels))
        segment_file(Item(path, image.mpp / scale if stated else None, name), out, choices)
        shown.append(_shown(pixels, scale, image.mpp / scale, out / name))
    return shown


def rival_of(ours: Sequence[Shown], out: Path) -> System | None:
    """The results of another network that the package holds, unpacked into OUT; None if it holds none."""
    packed = shipped_rival()
    if packed is None:
        return None
    facts = unpack_rival(packed, out, list(SCALES))
    shown = [
        _shown(one.pixels, one.scale, one.true_mpp, out / facts.folder(size))
        for size, one in zip(SCALES, ours, strict=True)
    ]
    made_by = facts.model_dump(include={"command", "commit", "config"})
    return System(facts.name, shown, made_by, estimates=False)


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


def page(title: str, source: str, after: Sequence[str], systems: Sequence[System], figures: Path) -> list[Block]:
    """The page of a demonstration; its picture belongs in `figures`."""
    caption = "Above the whole image, below a part of it enlarged, at each size; outlines as found, told nothing."
    caption += "".join(f" Last row: {rival.name}." for rival in systems[1:])
    return [
        Heading(title, 1),
        Text(source),
        Picture(figures / "sizes.png", caption, partial(figure, systems)),
        counts_table(systems),
        *(Text(made_before(rival)) for rival in systems[1:]),
        *map(Text, after),
    ]


def made_before(rival: System) -> str:
    """Where the figures of a network come from that is not in the package."""
    command, commit = rival.made_by["command"], rival.made_by["commit"][:12]
    return f"*{rival.name}*: made before by `{command}` at commit `{commit}`; its config is in demo.json."


def counts_table(systems: Sequence[System]) -> Table:
    """The magnifications side by side."""
    shown = systems[0].shown
    rows = [["pixels", *(f"{one.pixels.shape[1]} × {one.pixels.shape[0]}" for one in shown)]]
    for system in systems:
        name = "" if system is systems[0] else f", {system.name}"
        rows += [
            [f"objects{name}", *(str(one.objects) for one in system.shown)],
            [f"area of objects{name}", *(f"{100 * one.share:.1f} %" for one in system.shown)],
            [f"IoU with 1 ×{name}", *(f"{100 * system.agreement(one):.1f} %" for one in system.shown)],
        ]
    rows += [
        ["µm per pixel, estimated", *(_resolution(one.estimated_mpp) for one in shown)],
        ["µm per pixel, true", *(_resolution(one.true_mpp) for one in shown)],
        ["time", *(f"{one.seconds:.1f} s" for one in shown)],
    ]
    return Table(["", *(f"{one.scale:g} ×" for one in shown)], rows)


def as_json(systems: Sequence[System], elsewhere: dict[str, Any]) -> str:
    """The figures of the page, for programs."""
    facts = [
        {"name": system.name, **system.made_by, "sizes": [*map(system.figures, system.shown)]} for system in systems
    ]
    report = {"format": "seunet-demo/1", "image": SAMPLE, "systems": facts, "counted_elsewhere": elsewhere}
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def _resolution(mpp: float | None) -> str:
    return "unknown" if mpp is None else f"{mpp:.3f}"


def figure(systems: Sequence[System]) -> Figure:
    """A column per size: the whole image, and a part of it for each network."""
    ours, width_px, height_px = systems[0].shown, *PICTURE_PX
    drawn = new_figure(width_px, height_px * (1 + len(systems)) // 2)
    axes = drawn.subplots(1 + len(systems), len(ours), squeeze=False)
    for column, one in enumerate(ours):
        _outlined(axes[0, column], one, 0.5)
        across, down = one.pixels.shape[1], one.pixels.shape[0]
        axes[0, column].set_title(f"{one.scale:g} ×, {across} × {down} px", fontweight="bold")
        told = f"{one.objects} objects, {_resolution(one.estimated_mpp)} µm estimated ({one.true_mpp:.3f} true)"
        axes[0, column].set_xlabel(told, color=QUIET, fontsize=10)
        for row, system in enumerate(systems, start=1):
            _outlined(axes[row, column], system.shown[column], 1.4, DETAIL)
            if row > 1:
                axes[row, column].set_xlabel(f"{system.shown[column].objects} objects", color=QUIET, fontsize=10)
            if len(systems) > 1 and column == 0:
                axes[row, column].set_ylabel(system.name, fontweight="bold")
    return drawn


def _outlined(axis: Axes, one: Shown, line_width: float, part: tuple[float, float, float] = (0, 0, 1)) -> None:
    """`part`: left, top and side of what is shown, as fractions."""
    height, width = one.nuclei.shape
    axis.imshow(one.pixels, interpolation="nearest", extent=(-0.5, width - 0.5, height - 0.5, -0.5))
    if one.nuclei.any():
        # Drawn on the paper, not in the pixels: lines of one width at every magnification.
        axis.contour(one.nuclei, levels=[0.5], colors=[OUTLINE], linewidths=line_width)
    hide_frame(axis)
    left, top, side = part
    axis.set_xlim(left * width - 0.5, (left + side) * width - 0.5)
    axis.set_ylim((top + side) * height - 0.5, top * height - 0.5)
