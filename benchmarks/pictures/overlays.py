"""Twelve images of four kinds as a model outlines them, told nothing: of each set the best, the middle and the worst.

    python -m benchmarks.pictures.overlays nuclei-2 --sets prepared/monuseg:5 prepared/consep:7 prepared/tnbc:5 \
        --others OS-1-detail.ome.tif CMU-1-Small-Region.svs core.png

Green is what the model outlines, white what the annotators drew.  Of a set the held-out images are rated (IoU of whole
images); shown is the middle, or of the worst the place with most pixels wrong.  Images without annotations stand
beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import MONUSEG, SLIDE, Benchmark
from benchmarks.record import ROOT, write_results
from seunet.data import hold_out, read_manifest
from seunet.evaluation.figures import new_figure, write_png
from seunet.images import thumbnail
from seunet.maths import instance_scores, overlaps
from seunet.models import ScaleUNet
from seunet.segmentation import Segmentation, segment

BENCHMARK = Benchmark(
    "pictures.overlays",
    ("results/benchmarks/overlays.json", "docs/images/overlays.jpg"),
    5,
    arguments="nuclei-2 --sets prepared/monuseg:5 prepared/consep:7 prepared/tnbc:5 "
    "--others OS-1-detail.ome.tif CMU-1-Small-Region.svs core_A0CE_A7_x_ini_1074_y_ini_716.png",
    needs=(MONUSEG, SLIDE),
)

PICTURE = ROOT / "docs" / "images" / "overlays.jpg"
SHOWN_UM = 80.0
"""Side of what is shown: about 320 px at 40 ×."""
PANEL_PX = 480
RANKS = ("best", "middle", "worst")
GREEN, WHITE = (0, 230, 90), (255, 255, 255)
Rgb = NDArray[np.uint8]


class Rated(NamedTuple):
    """An image, what was found in it, and how well that fits what annotators drew, where they did."""

    source: str
    name: str
    pixels: Rgb
    truth: NDArray[Any] | None
    found: Segmentation
    mpp: float
    iou: float
    aji: float


def rated(source: str, name: str, pixels: Rgb, truth: NDArray[Any] | None, mpp: float, model: ScaleUNet) -> Rated:
    found = segment(pixels, model)
    if truth is None:
        return Rated(source, name, pixels, None, found, mpp, np.nan, np.nan)
    nuclei = found.labels == 1
    iou = float((nuclei & (truth > 0)).sum() / max((nuclei | (truth > 0)).sum(), 1))
    score = instance_scores(overlaps(truth.astype(np.int64), numbered(found).astype(np.int64)))
    return Rated(source, name, pixels, truth, found, mpp, iou, score.aji)


def numbered(found: Segmentation) -> NDArray[np.int32]:
    """The outlined objects, numbered from 1."""
    numbers = np.zeros(found.labels.shape, dtype=np.int32)
    for number, one in enumerate(found.objects, start=1):
        cv2.fillPoly(numbers, [np.rint(ring).astype(np.int32) for ring in one.outline], number)
    return numbers


def of_set(spec: str, model: ScaleUNet) -> list[Rated]:
    """The best, the middle and the worst of a set's held-out images; `spec` is ROOT:EVERY."""
    root, _, every = spec.rpartition(":")
    manifest = read_manifest(Path(root))
    ranked = []
    for image in hold_out(manifest, Path(root), None, int(every)).images:
        if image.instances is None or image.mpp is None:
            raise SystemExit(f"{root}: {image.name} has no instances or no mpp")
        pixels, truth = (np.asarray(Image.open(Path(root) / file.path)) for file in (image.image, image.instances))
        ranked.append(rated(Path(root).name, image.name, pixels, truth, image.mpp, model))
    ranked.sort(key=lambda one: -one.iou)
    return [ranked[0], ranked[len(ranked) // 2], ranked[-1]]


def shown_place(one: Rated, worst: bool) -> tuple[int, int, int]:
    """Row, column and side of what is shown."""
    height, width = one.pixels.shape[:2]
    side = min(round(SHOWN_UM / one.mpp), height, width)
    if not worst or one.truth is None:
        return (height - side) // 2, (width - side) // 2, side
    wrong = ((one.found.labels == 1) != (one.truth > 0)).astype(np.float32)
    sums = cv2.boxFilter(wrong, -1, (side, side), normalize=False, anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
    inside = sums[: height - side + 1, : width - side + 1]
    row, column = np.unravel_index(int(np.argmax(inside)), inside.shape)
    return int(row), int(column), side


def panel(one: Rated, worst: bool) -> Rgb:
    """The part that is shown, enlarged, with both outlines."""
    row, column, side = shown_place(one, worst)
    zoom = PANEL_PX / side
    part = one.pixels[row : row + side, column : column + side]
    picture = cv2.resize(part, (PANEL_PX, PANEL_PX), interpolation=cv2.INTER_CUBIC)
    if one.truth is not None:
        cut = one.truth[row : row + side, column : column + side]
        for number in np.unique(cut[cut > 0]):
            rings, _ = cv2.findContours((cut == number).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
            cv2.polylines(picture, [_placed(ring, 0.5, zoom) for ring in rings], True, WHITE, 1, cv2.LINE_AA)
    for found in one.found.objects:
        rings = [_placed(ring - np.array([column, row]), 0.0, zoom) for ring in found.outline]
        cv2.polylines(picture, rings, True, GREEN, 2, cv2.LINE_AA)
    return np.asarray(picture, dtype=np.uint8)


def _placed(ring: NDArray[Any], moved: float, zoom: float) -> NDArray[np.int32]:
    return np.rint((ring.reshape(-1, 2) + moved) * zoom).astype(np.int32)


def title(one: Rated, rank: str) -> str:
    if one.truth is None:
        return f"{one.name}\nnot annotated"
    return f"{one.source}, {rank}: {one.name[:16]}\nIoU {100 * one.iou:.0f} %, AJI {one.aji:.2f}"


def draw(columns: Sequence[Sequence[Rated]]) -> None:
    """A column per source."""
    figure = new_figure(2000, 1680)
    axes = figure.subplots(len(RANKS), len(columns), squeeze=False)
    for place, column in enumerate(columns):
        for line, (rank, one) in enumerate(zip(RANKS, column, strict=True)):
            axis = axes[line][place]
            axis.imshow(panel(one, rank == "worst"))
            axis.set_title(title(one, rank), fontsize=11)
            axis.set_axis_off()
    whole = PICTURE.with_suffix(".png")
    write_png(figure, whole)
    with Image.open(whole) as picture:
        picture.convert("RGB").save(PICTURE, quality=78)
    whole.unlink()


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("model", metavar="MODEL")
    made.add_argument("--sets", nargs=3, required=True, metavar="ROOT:EVERY")
    made.add_argument("--others", nargs=3, required=True, type=Path, metavar="IMAGE", help="without annotations")
    return made


def main() -> None:
    """Rate, draw and write."""
    given = parser().parse_args()
    model = seunet.load(given.model)
    columns = [of_set(spec, model) for spec in given.sets]
    columns.append([unannotated(path, model) for path in given.others])
    draw(columns)
    rows = [
        {"source": one.source, "image": one.name, "rank": rank, "iou": round(one.iou, 4), "aji": round(one.aji, 4)}
        for column in columns[:-1]
        for rank, one in zip(RANKS, column, strict=True)
    ]
    print(write_results(BENCHMARK, {"model": given.model, "images": rows}))


def unannotated(path: Path, model: ScaleUNet) -> Rated:
    found = segment(path, model)
    with found.image() as image:
        pixels = thumbnail(image, max(found.labels.shape))
    return Rated("others", path.stem, pixels, None, found, found.scale.mpp or 0.25, np.nan, np.nan)


if __name__ == "__main__":
    main()
