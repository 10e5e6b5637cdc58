"""docs/images/augmentation.jpg: what training does to a window, each change alone, on the demo image.

python -m benchmarks.pictures.augmentation
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.declare import REAL, Benchmark
from benchmarks.record import ROOT
from seunet.data import (
    Mixing,
    OpticsShares,
    blurred,
    draw_mixing,
    draw_optics,
    noisy,
    restained,
    rim_of,
    sharpened,
    shrunk_and_enlarged,
    through_jpeg,
    with_optics,
)
from seunet.evaluation.figures import new_figure
from seunet.images import open_image
from seunet.storage import atomic_path
from support.real_data import real_data

BENCHMARK = Benchmark("pictures.augmentation", ("docs/images/augmentation.jpg",), 1, needs=(REAL,))

PICTURE = ROOT / "docs" / "images" / "augmentation.jpg"
PLACE, SIDE = (300, 300), 192
STILL = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
OTHER_HUES = ((0.12, -0.06, 0.05), (0.1, -0.12, 0.14))
DRAW, OFTEN = 3, OpticsShares(blur=0.5, sharpen=0.5, resample=0.5, noise=0.5, jpeg=0.5)
RIM_UM, MADE_MPP, RIM_COLOR, NUCLEUS, GROUND = 0.75, 0.1, (255, 230, 0), (98, 72, 150), (231, 190, 214)
DISCS = ((62, 70, 36), (122, 88, 32), (84, 132, 30), (158, 36, 20), (158, 146, 22))

Rgb = NDArray[np.uint8]


def panels(image: Rgb) -> Iterator[tuple[str, Rgb]]:
    """Each change with its caption, on the same part of the image."""
    x, y = PLACE
    part = np.ascontiguousarray(image[y : y + SIDE, x : x + SIDE])
    wide = image[y - SIDE : y + 2 * SIDE, x - SIDE : x + 2 * SIDE]
    yield "as it is", part
    yield "a quarter turn, flipped", np.ascontiguousarray(part.transpose(1, 0, 2)[::-1])
    for caption, way in (
        ("⅓, nearest pixels (the paper)", cv2.INTER_LINEAR),
        ("⅓, averaged (a scanner)", cv2.INTER_AREA),
    ):
        yield caption, np.asarray(cv2.resize(wide, (SIDE, SIDE), interpolation=way), dtype=np.uint8)
    yield "blur, σ = 2 px", blurred(part, 2.0)
    yield "sharpening, 1.5", sharpened(part, 1.5)
    yield "shrunk 3 ×, enlarged again", shrunk_and_enlarged(part, 3.0)
    yield "noise, 14 of 255", noisy(part, 14.0, seed=0)
    yield "JPEG, quality 25", through_jpeg(part, 25)
    yield "eosin × 1.6", restained(part, Mixing(1.0, 1.6, STILL))
    yield "haematoxylin × 0.6", restained(part, Mixing(0.6, 1.0, STILL))
    yield "stains of other hues", restained(part, Mixing(1.0, 1.0, OTHER_HUES))
    random = np.random.default_rng(DRAW)
    yield (
        "several together, as drawn",
        with_optics(restained(part, draw_mixing(0.7, random)), draw_optics(OFTEN, random)),
    )
    yield f"the rim, {RIM_UM:g} µm wide", rim_shown()


def rim_shown() -> Rgb:
    """Made nuclei that touch, with the rim that is made from their instance map."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    numbers = np.zeros((SIDE, SIDE), dtype=np.uint16)
    for number, (x, y, radius) in enumerate(DISCS, start=1):
        numbers[((columns - x) ** 2 + (rows - y) ** 2 < radius**2) & (numbers == 0)] = number
    picture = np.where(numbers[..., None] > 0, NUCLEUS, GROUND).astype(np.uint8)
    picture[rim_of(numbers, round(RIM_UM / MADE_MPP))] = RIM_COLOR
    return picture


def main() -> None:
    """Draw it."""
    BENCHMARK.parser(__doc__).parse_args()
    data = real_data()
    if data is None:
        sys.exit("no real data: set SEUNET_DATA or put it in ../shared/data")
    with closing(open_image(data / "demo" / "OS-1-detail.ome.tif")) as opened:
        level = opened.levels[0]
        image = opened.read(0, 0, 0, level.width_px, level.height_px)
    shown = list(panels(image))
    figure = new_figure(1890, 610)
    places = figure.subplots(2, 7).ravel()
    for place in places:
        place.set_axis_off()
    for place, (caption, pixels) in zip(places, shown, strict=True):
        place.imshow(pixels, interpolation="nearest")
        place.set_title(caption, fontsize=8)
    with atomic_path(PICTURE) as part:
        figure.savefig(part, format="jpeg", pil_kwargs={"quality": 88})
    print(PICTURE)


if __name__ == "__main__":
    main()
