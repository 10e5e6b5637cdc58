"""How well the scale is told from the pixels, on images that nothing was chosen by.

    python -m benchmarks.measure.scale.estimate PREPARED [--slide FILE.svs] [--split test]

Whole test images at the paper's 17 scales, the same less sharp and in other stains, images of other things, a
stain never seen, and the time it takes.  Writes results/benchmarks/scale_estimate.json and
docs/images/scale-estimate.png.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.declare import MONUSEG, SKIMAGE, SLIDE, Benchmark
from benchmarks.measure.scale.samples import images_of, scaled
from benchmarks.pictures.scale_estimate import ScalePoint, scale_figure
from benchmarks.record import ROOT, write_results
from seunet.data import Augmentation, blurred, draw, stain_table, through_jpeg
from seunet.evaluation import TEST_SCALES
from seunet.evaluation.figures import write_png
from seunet.evaluation.fitting import error_scores
from seunet.models import create_model
from seunet.scale import ScaleEstimate, estimate_scale
from support.foreign_images import foreign_images

BENCHMARK = Benchmark(
    "measure.scale.estimate",
    ("results/benchmarks/scale_estimate.json", "docs/images/scale-estimate.png"),
    10,
    arguments="prepared/monuseg --slide CMU-1-Small-Region.svs",
    needs=(MONUSEG, SLIDE, SKIMAGE),
)

RgbArray = NDArray[np.uint8]

CHANGED_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
STAIN = Augmentation(flips=False, stain_jitter=0.3)
NETWORK_PX = 512
NUCLEI_WIDTHS = (60, 120, 240, 480, 960)


def estimates_at(
    images: list[tuple[str, RgbArray]],
    scales: tuple[float, ...],
    change: Callable[[RgbArray, int], RgbArray] = lambda pixels, _: pixels,
) -> list[dict[str, Any]]:
    """One row for each image and scale; `change` is made to the rescaled image."""
    rows = []
    for number, (name, pixels) in enumerate(images):
        for scale in scales:
            found = estimate_scale(change(scaled(pixels, scale), number))
            rows.append({"image": name, "scale": round(scale, 4), **rounded(found)})
        print(name, flush=True)
    return rows


def rounded(found: ScaleEstimate) -> dict[str, Any]:
    values = {key: value for key, value in found._asdict().items() if key != "mpp"}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    known = [row for row in rows if row["known"]]
    errors = [float(np.log2(row["relative_scale"] / row["scale"])) for row in known]
    covered = [row["low"] <= row["scale"] <= row["high"] for row in known]
    return {
        **error_scores(errors),
        "refused": len(rows) - len(known),
        "asked": len(rows),
        "covered": round(float(np.mean(covered)), 4),
        "median_half_interval": round(float(np.median([(r["high"] / r["low"]) ** 0.5 for r in known])), 3),
    }


def restained(pixels: RgbArray, number: int) -> RgbArray:
    """As if from another laboratory: the optical density of each colour times 0.7 to 1.3."""
    return cv2.LUT(pixels, stain_table(draw(STAIN, 8, 0, number))[None]).astype(np.uint8)


def foreign() -> dict[str, Any]:
    """Images of other things, as they are and at four other sizes: how many get an answer."""
    reasons: dict[str, str] = {}
    answered, other_sizes = [], []
    for name, make in foreign_images().items():
        pixels = make()
        found = estimate_scale(pixels)
        reasons[name] = found.reason
        answered += [name] * found.known
        for scale in (0.5, 0.7, 1.4, 2.0):
            other_sizes += [f"{name} × {scale:g}"] * estimate_scale(scaled(pixels, scale)).known
    return {"count": len(reasons), "answered": answered, "answered_at_other_sizes": other_sizes, "reasons": reasons}


def unseen_stain() -> dict[str, Any]:
    """scikit-image's ihc.png: haematoxylin and DAB; its mpp is not known, so only the ratios can be checked."""
    from skimage.data import immunohistochemistry

    pixels = np.ascontiguousarray(immunohistochemistry())  # type: ignore[no-untyped-call]
    return {f"{scale:g}": rounded(estimate_scale(scaled(pixels, scale))) for scale in (0.5, 0.7, 1.0, 1.4, 2.0)}


def of_slide(path: Path) -> dict[str, Any]:
    """A slide whose metadata say 0.499 µm per pixel, so s = 0.5: other scanner, other laboratory."""
    import openslide

    with openslide.OpenSlide(str(path)) as slide:
        pixels = np.ascontiguousarray(np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., :3])
        mpp = float(slide.properties[openslide.PROPERTY_NAME_MPP_X])
    found = estimate_scale(pixels)
    return {"file": path.name, "mpp_of_metadata": mpp, "true": round(0.25 / mpp, 3), **rounded(found), "mpp": found.mpp}


def costs(pixels: RgbArray) -> dict[str, Any]:
    """CPU time a pixel, of the estimate and of the network of `nuclei` on one thread."""
    by_size = {}
    for scale in (0.25, 1.0, 4.0):
        image = scaled(pixels, scale)
        by_size[f"{image.shape[1]}×{image.shape[0]}"] = round(_cpu_ns(partial(estimate_scale, image), image, 5), 1)
    model = create_model("seunet", preset="geometric", widths=NUCLEI_WIDTHS).eval()
    window = torch.rand(1, 3, NETWORK_PX, NETWORK_PX)
    with torch.no_grad():
        network = _cpu_ns(lambda: model(window), np.empty((NETWORK_PX, NETWORK_PX)), 2)
    return {"estimate_ns_per_pixel": by_size, "network_ns_per_pixel": round(network, 1)}


def _cpu_ns(run: Callable[[], object], image: NDArray[Any], times: int) -> float:
    """The fastest of a few runs, in nanoseconds of CPU a pixel."""
    run()
    taken: list[float] = []
    for _ in range(times):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    return min(taken) / float(image.shape[0] * image.shape[1]) * 1e9


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("--slide", type=Path)
    made.add_argument("--split", default="test")
    return made


def main() -> None:
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    images = list(images_of(arguments.prepared, arguments.split))
    plain = estimates_at(images, TEST_SCALES)
    figures = {
        "split": arguments.split,
        "images": len(images),
        "plain": summary(plain),
        "by_scale": {
            f"{scale:.2f}": summary([row for row in plain if row["scale"] == round(scale, 4)]) for scale in TEST_SCALES
        },
        "blurred": summary(estimates_at(images, CHANGED_SCALES, lambda pixels, _: blurred(pixels, 0.8))),
        "other_stains": summary(estimates_at(images, CHANGED_SCALES, restained)),
        "jpeg": summary(estimates_at(images, CHANGED_SCALES, lambda pixels, _: through_jpeg(pixels, 75))),
        "foreign": foreign(),
        "ihc": unseen_stain(),
        "slide": None if arguments.slide is None else of_slide(arguments.slide),
        "cost": costs(images[0][1]),
        "rows": plain,
    }
    points = [ScalePoint(r["scale"], r["relative_scale"], r["low"], r["high"]) for r in plain if r["known"]]
    title = f"{len(images)} {arguments.split} images of MoNuSeg at 17 scales, told nothing"
    write_png(scale_figure(points, title), ROOT / "docs" / "images" / "scale-estimate.png")
    write_results(BENCHMARK, figures)
    print({key: value for key, value in figures.items() if key != "rows"})


if __name__ == "__main__":
    main()
