"""How small an object may be before it is a speck: F1, AJI and IoU of objects against the least area, in µm².

    python -m benchmarks.measure.segmentation.least_object SET[=IMAGES] … [--model nuclei]

Each SET is a prepared set with instances; of its training images the first IMAGES are segmented with their mpp stated.
Objects are found once, as `seunet segment` finds them, and left out afterwards by their area.  Nothing of a test split
is read.  Writes results/benchmarks/least_object.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.model.calibrate_heads import HELD_OUT
from benchmarks.record import write_results
from seunet.data import read_manifest
from seunet.evaluation.objects import found_objects, image_scores, set_scores
from seunet.images import pillow_codec as raster
from seunet.models import load, weights_sha256

BENCHMARK = Benchmark(
    "measure.segmentation.least_object",
    ("results/benchmarks/least_object.json",),
    10,
    arguments="prepared/monuseg-2 prepared/tnbc=10 prepared/consep=5",
    needs=(MONUSEG,),
)

AREAS_UM2 = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0)


def main() -> None:
    """Segment once, leave out by area, count."""
    asked = parser().parse_args()
    torch.set_num_threads(1)
    model = load(asked.model)
    figures: dict[str, Any] = {"weights_sha256": weights_sha256(model), "areas_um2": list(AREAS_UM2), "sets": {}}
    for text in asked.sets:
        root, _, count = text.partition("=")
        name, rows = Path(root).name, of_set(Path(root), int(count) if count else None, model)
        figures["sets"][name] = rows
        print(name, rows, flush=True)
    figures["mean_f1"] = [
        round(float(np.mean([rows["f1"][place] for rows in figures["sets"].values()])), 4)
        for place in range(len(AREAS_UM2))
    ]
    print(write_results(BENCHMARK, figures))


def of_set(root: Path, count: int | None, model: Any) -> dict[str, list[Any]]:
    """Scores for each least area.  Of MoNuSeg only what the shipped weights did not learn from is looked at."""
    entries = [entry for entry in read_manifest(root).images if entry.split == "train" and entry.instances is not None]
    held_out = [entry for entry in entries if entry.name in HELD_OUT]
    by_area: list[list[dict[str, Any]]] = [[] for _ in AREAS_UM2]
    for entry in (held_out or entries)[:count]:
        assert entry.instances is not None
        rgb = raster.decode_rgb(raster.read_image(root / entry.image.path), entry.name).pixels
        truth = raster.decode_codes(raster.read_image(root / entry.instances.path), entry.name).pixels
        found = found_objects(rgb, model, entry.mpp, min_area="0um2").numbers
        areas = np.bincount(found.ravel()) * (entry.mpp or 0.25) ** 2
        nothing = np.zeros(truth.shape, dtype=np.bool_)
        for place, least in enumerate(AREAS_UM2):
            by_area[place].append(image_scores(truth, np.where(areas[found] >= least, found, 0), nothing))
    scores = [set_scores(rows) for rows in by_area]
    return {name: [row[name] for row in scores] for name in ("f1", "aji", "pq", "iou", "found_per_true")}


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("sets", nargs="+")
    made.add_argument("--model", default="nuclei")
    return made


if __name__ == "__main__":
    main()
