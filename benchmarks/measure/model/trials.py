"""What short trials of a training are worth: held-out images as they are, and as other microscopes would show them.

    python -m benchmarks.measure.model.trials optics=runs/trial-optics/model --sets prepared/monuseg:5 prepared/tnbc:5

Each image's middle is segmented with its stated µm per pixel; IoU of the nuclei over all pixels, means over the images
of AJI and PQ, objects per true one.  `necks` leaves the rim out: objects parted by their necks alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.data import Mixing, blurred, hold_out, read_manifest, restained, through_jpeg
from seunet.maths import instance_scores, overlaps
from seunet.models import ScaleUNet
from seunet.results import ArrayPlane, objects
from seunet.segmentation import Segmentation, segment

BENCHMARK = Benchmark(
    "measure.model.trials",
    ("results/trials/nuclei-2/scores.json",),
    10,
    arguments="first=nuclei new=runs/trial-new/model --sets prepared/monuseg:5 prepared/consep:7 prepared/tnbc:5",
    needs=("runs/trial-…",),
)

SIDE_PX, MIN_AREA_PX = 400, 10
STILL = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
Rgb = NDArray[np.uint8]


def _halved(image: Rgb) -> Rgb:
    small: Rgb = np.asarray(cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    return small


CHANGES: dict[str, Callable[[Rgb], Rgb]] = {
    "as it is": lambda image: image,
    "blur 1.6": lambda image: blurred(image, 1.6),
    "JPEG 40": lambda image: through_jpeg(image, 40),
    "eosin × 1.4": lambda image: restained(image, Mixing(1.0, 1.4, STILL)),
    "½, averaged": _halved,
}


def numbered(found: Segmentation, rim: bool) -> NDArray[np.int32]:
    """The objects of a result, numbered from 1."""
    plane = None if found.rim is None or not rim else ArrayPlane(found.rim.astype(np.uint8))
    numbers = np.zeros(found.labels.shape, dtype=np.int32)
    every = objects(ArrayPlane(found.labels), found.frame, min_area_px=MIN_AREA_PX, rim=plane)
    for number, one in enumerate(every, start=1):
        for row, start, end in one.runs.T.tolist():
            numbers[row, start:end] = number
    return numbers


def parts(spec: str, most: int) -> list[tuple[Rgb, NDArray[Any], float]]:
    """(pixels, instances, mpp) of the middles of a set's held-out images; `spec` is ROOT:EVERY."""
    root, _, every = spec.rpartition(":")
    manifest = read_manifest(Path(root))
    held = hold_out(manifest, Path(root), None, int(every)).images
    found = []
    for image in held[:: max(len(held) // most, 1)][:most]:
        if image.instances is None or image.mpp is None:
            raise SystemExit(f"{root}: {image.name} has no instances or no mpp")
        pixels, numbers = (np.asarray(Image.open(Path(root) / file.path)) for file in (image.image, image.instances))
        y, x = ((length - SIDE_PX) // 2 for length in numbers.shape)
        inside = np.s_[y : y + SIDE_PX, x : x + SIDE_PX]
        found.append((np.ascontiguousarray(pixels[inside]), numbers[inside], image.mpp))
    return found


def scores(model: ScaleUNet, given: Sequence[tuple[Rgb, NDArray[Any], float]], change: Callable[[Rgb], Rgb]) -> Any:
    """IoU, AJI, PQ and objects per true one, with the rim and by necks alone."""
    both = either = 0
    rows: dict[str, list[tuple[float, float, int, int]]] = {"rim": [], "necks": []}
    for pixels, truth, mpp in given:
        shown = change(pixels)
        factor = len(pixels) // len(shown)
        found = segment(shown, model, mpp=mpp * factor, scale="stated")
        for name in rows if model.rim is not None else ("necks",):
            numbers = numbered(found, name == "rim").repeat(factor, 0).repeat(factor, 1)
            one = instance_scores(overlaps(truth.astype(np.int64), numbers.astype(np.int64)))
            rows[name].append((one.aji, one.pq, one.found, one.true))
        nuclei = found.labels.repeat(factor, 0).repeat(factor, 1) == 1
        both += int((nuclei & (truth > 0)).sum())
        either += int((nuclei | (truth > 0)).sum())
    result: dict[str, Any] = {"iou": round(both / either, 4)}
    for name, each in rows.items():
        if each:
            aji, pq, count, true = np.array(each).T
            result[name] = {
                "aji": round(float(np.nanmean(aji)), 4),
                "pq": round(float(np.nanmean(pq)), 4),
                "objects_per_true": round(float(count.sum() / true.sum()), 3),
            }
    return result


def with_sets(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A parser that asks for prepared sets, too."""
    made.add_argument("--sets", nargs="+", required=True, metavar="ROOT:EVERY")
    made.add_argument("--most", type=int, default=6, help="images per set")
    return made


def images_of(given: argparse.Namespace) -> dict[str, list[tuple[Rgb, NDArray[Any], float]]]:
    """The held-out images that were asked for, by the names of their sets."""
    return {Path(spec.rpartition(":")[0]).name: parts(spec, given.most) for spec in given.sets}


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("models", nargs="+", metavar="NAME=MODEL")
    return with_sets(made)


def main() -> None:
    """Measure, print and write."""
    given = parser().parse_args()
    torch.set_num_threads(1)
    images = images_of(given)
    figures: dict[str, Any] = {}
    for spec in given.models:
        name, _, place = spec.partition("=")
        model = seunet.load(place)
        figures[name] = {
            which: {change: scores(model, some, way) for change, way in CHANGES.items()}
            for which, some in images.items()
        }
        print(name, figures[name], flush=True)
    print(write_results(BENCHMARK, {"images": {name: len(some) for name, some in images.items()}, "models": figures}))


if __name__ == "__main__":
    main()
