"""The IoU of what `seunet segment` writes, against that of `seunet evaluate`, on the same images at s = 1.

    python -m benchmarks.measure.segmentation.geojson_scores DATA [--split test] [--images NAME,NAME] [--model nuclei]

DATA is a prepared set.  Its images are segmented as files, at their own pixels; the polygons of objects.geojson are
painted into masks again and counted against the set's.  `evaluate` sees whole images too (`whole`, which must agree to
0.005) and the set's own windows (`windows`, where each pixel has other surroundings).  With --images nothing is
written: choices are made on images held out of the training split, and the test split is for final weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from benchmarks.watching import Ran, run_seunet
from seunet.data import read_manifest
from seunet.maths import confusion_matrices, headline_iou
from seunet.results import Frame
from support.geojson import painted, read_geojson

BENCHMARK = Benchmark(
    "measure.segmentation.geojson_scores",
    ("results/benchmarks/geojson_scores.json",),
    5,
    arguments="prepared/monuseg",
    needs=(MONUSEG,),
)

FUSION = "p_ens"
MOST_DIFFERENCE = 0.005


def main() -> None:
    """Segment, paint, count, compare."""
    asked = parser().parse_args()
    manifest = read_manifest(asked.data)
    names = asked.images.split(",") if asked.images else None
    images = [
        image for image in manifest.images if image.split == asked.split and (names is None or image.name in names)
    ]
    classes = tuple(one.name for one in manifest.classes)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        files = [asked.data / image.image.path for image in images]
        chosen = ("-m", asked.model, "--scale", "native", "--fusion", FUSION, "--no-progress")
        done(run_seunet("segment", *files, "-o", out / "segment", *chosen, threads=asked.threads))
        rows = [counted(asked.data / one.mask.path, out / "segment" / one.name, classes) for one in images]
        side = max(max(image.height_px, image.width_px) for image in images)
        evaluated = {
            name: evaluation(asked, out / name, [image.name for image in images], tiles)
            for name, tiles in (("whole", side), ("windows", None))
        }
    figures = {
        "split": asked.split,
        "images": len(images),
        "iou_of_geojson": iou([row["geojson"] for row in rows]),
        "iou_of_labels": iou([row["labels"] for row in rows]),
        "iou_of_evaluate": evaluated,
        "objects": sum(row["objects"] for row in rows),
        "specks_left_out": sum(row["specks"] for row in rows),
    }
    difference = figures["iou_of_geojson"] - evaluated["whole"]
    figures["difference"] = round(difference, 6)
    print(json.dumps(figures, indent=1) if names else write_results(BENCHMARK, figures))
    if abs(difference) > MOST_DIFFERENCE:
        sys.exit(f"not as it must be: the files and `evaluate` differ by {difference:.4f}")


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("data", type=Path)
    made.add_argument("--split", default="test")
    made.add_argument("--images")
    made.add_argument("--model", default="nuclei")
    made.add_argument("--threads", type=int, default=2)
    return made


def done(ran: Ran) -> None:
    if ran.code:
        raise SystemExit(f"exit code {ran.code}: {ran.err}")


def counted(mask: Path, result: Path, classes: tuple[str, ...]) -> dict[str, Any]:
    """Confusion matrices of one image, from its polygons and from its labels."""
    with Image.open(mask) as picture:
        truth = np.asarray(picture)  # a palette's codes
    frame = Frame(1.0, 0, 0, None, classes, ((0, 0, 0),) * len(classes))
    document = read_geojson(result / "objects.geojson")
    run = json.loads((result / "run.json").read_text())
    return {
        "geojson": confusion(painted(document, frame, *truth.shape), truth, len(classes)),
        "labels": confusion(tifffile.imread(result / "labels.tif", key=0), truth, len(classes)),
        "objects": len(document["features"]),
        "specks": run["results"]["objects_too_small"],
    }


def confusion(found: NDArray[np.uint8], truth: NDArray[np.uint8], classes: int) -> torch.Tensor:
    """[classes, classes]"""
    predicted, target = (torch.from_numpy(codes.astype(np.int64)) for codes in (found, truth))
    return confusion_matrices(predicted[None], target, classes)[0]


def iou(confusions: list[torch.Tensor]) -> float:
    """Over all pixels of all images, as `evaluate` counts."""
    return round(headline_iou(torch.stack(confusions).sum(0)), 6)


def evaluation(asked: argparse.Namespace, out: Path, names: list[str], tile_px: int | None) -> float:
    """The number of `seunet evaluate` at s = 1."""
    tiles = () if tile_px is None else ("--tiles", f"{tile_px},{tile_px}")
    options = ("--split", asked.split, "--images", ",".join(names), "--scales", "1", "--fusions", FUSION, *tiles)
    done(run_seunet("evaluate", asked.model, asked.data, "-o", out, *options, "--no-progress", threads=asked.threads))
    document = json.loads((out / "evaluation.json").read_text())
    (found,) = (row["ious"][0] for row in document["scores"] if row["row"] == FUSION)
    return float(found)


if __name__ == "__main__":
    main()
