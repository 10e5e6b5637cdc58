"""What splitting touching nuclei at their necks gains, on the published instance maps of MoNuSeg.

    python -m benchmarks.measure.segmentation.splitting

The true foreground is taken apart into objects, with and without splitting, and compared with the true nuclei.  The
two numbers of the rule were chosen on the training images; the test images are counted once with what was chosen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.declare import REAL, Benchmark
from benchmarks.record import write_results
from seunet.results import Frame, objects
from seunet.results import find_objects as rule
from support.planes import ArrayPlane
from support.real_data import real_data

BENCHMARK = Benchmark(
    "measure.segmentation.splitting",
    ("results/benchmarks/splitting.json",),
    5,
    needs=(REAL,),
)

FRAME = Frame(1.0, 0, 0, None, ("background", "nucleus"), ((0, 0, 0), (255, 214, 64)))
NECKS = (0.75, 0.8, 0.85, 0.9)
SLACKS_PX = (0.0, 1.0, 1.5)

Instances = NDArray[np.int64]


def main() -> None:
    """Measure and write results/benchmarks/splitting.json."""
    BENCHMARK.parser(__doc__).parse_args()
    data = real_data()
    if data is None:
        sys.exit("no real data: set SEUNET_DATA or put it in ../shared/data")
    train, test = (instance_maps(data, split) for split in ("train", "test"))
    chosen = (rule.NECK, rule.SLACK_PX)
    figures: dict[str, Any] = {
        "rule": {"neck": chosen[0], "slack_px": chosen[1]},
        "train": {"images": len(train), "whole": scores(train, split=False), "split": scores(train)},
        "trials on train": [
            {"neck": neck, "slack_px": slack} | scores(train, rule_numbers=(neck, slack))
            for neck in NECKS
            for slack in SLACKS_PX
        ],
        "test": {"images": len(test), "whole": scores(test, split=False), "split": scores(test)},
        "nuclei_per_cpu_second": rate(train),
    }
    print(write_results(BENCHMARK, figures))


def instance_maps(data: Path, split: str) -> list[Instances]:
    """The published instance maps of a split."""
    files = sorted((data / "monuseg" / split / "labels_inst").glob("*.png"))
    return [np.asarray(Image.open(file)).astype(np.int64) for file in files]


def scores(
    maps: Sequence[Instances], *, split: bool = True, rule_numbers: tuple[float, float] | None = None
) -> dict[str, float]:
    """Means over the images: AJI, F1 at IoU > 0.5, and by how much the count is off."""
    before = rule.NECK, rule.SLACK_PX
    rule.NECK, rule.SLACK_PX = rule_numbers or before  # type: ignore[misc]
    try:
        rows = np.array([compared(truth, found_in(truth, split)) for truth in maps])
    finally:
        rule.NECK, rule.SLACK_PX = before  # type: ignore[misc]
    return {
        "aji": round(float(rows[:, 0].mean()), 4),
        "f1": round(float(rows[:, 1].mean()), 4),
        "count_error": round(float((np.abs(rows[:, 3] - rows[:, 2]) / rows[:, 2]).mean()), 4),
        "nuclei": int(rows[:, 2].sum()),
        "objects": int(rows[:, 3].sum()),
    }


def found_in(truth: Instances, split: bool) -> Instances:
    """The objects of the foreground, numbered."""
    labels = np.zeros_like(truth)
    plane = ArrayPlane((truth > 0).astype(np.uint8))
    for number, one in enumerate(objects(plane, FRAME, split=split), start=1):
        for row, start, end in one.runs.T:
            labels[row, start:end] = number
    return labels


def compared(truth: Instances, found: Instances) -> tuple[float, float, int, int]:
    """(AJI of Kumar et al. 2017, F1 at IoU > 0.5, true nuclei, objects)."""
    truth = np.unique(truth, return_inverse=True)[1].reshape(truth.shape)
    width = int(found.max()) + 1
    pairs = np.bincount((truth * width + found).ravel(), minlength=(int(truth.max()) + 1) * width)
    pairs = pairs.reshape(-1, width)
    true_areas, found_areas, both = pairs.sum(1)[1:], pairs.sum(0)[1:], pairs[1:, 1:]
    either = true_areas[:, None] + found_areas[None] - both
    iou = both / either
    nucleus, best = np.arange(len(true_areas)), iou.argmax(1)
    unused = np.setdiff1d(np.arange(len(found_areas)), best)
    aji = both[nucleus, best].sum() / (either[nucleus, best].sum() + found_areas[unused].sum())
    f1 = 2 * (iou > 0.5).sum() / (len(true_areas) + len(found_areas))
    return float(aji), float(f1), len(true_areas), len(found_areas)


def rate(maps: Sequence[Instances]) -> dict[str, int]:
    """Objects that come out of one second of one core, whole and split."""
    plane = ArrayPlane(np.concatenate([(truth > 0).astype(np.uint8) for truth in maps]))
    rates = {}
    for name, split in (("whole", False), ("split", True)):
        start = time.process_time()
        count = sum(1 for _ in objects(plane, FRAME, split=split))
        rates[name] = round(count / (time.process_time() - start))
    return rates


if __name__ == "__main__":
    main()
