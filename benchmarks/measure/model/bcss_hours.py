"""What the paper's protocol on the whole of BCSS would cost here, by the pixels it sees.

    python -m benchmarks.measure.model.bcss_hours

One training step and one prediction of each network at the paper's widths, times the paper's windows, epochs and test
scales.  Hours of one core, by processor time.
"""

from __future__ import annotations

import argparse

import torch

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.evaluation import TEST_SCALES
from seunet.evaluation.reproduce import pace_of

BENCHMARK = Benchmark("measure.model.bcss_hours", ("results/benchmarks/bcss_hours.json",), 1)
TRAINING_WINDOWS, TEST_WINDOWS, SIDE_PX, EPOCHS = 3154, 1222, 512, 70
"""Of the paper."""
CLASSES = 5


def parser() -> argparse.ArgumentParser:
    return BENCHMARK.parser(__doc__)


def main() -> None:
    """Measure and write."""
    parser().parse_args()
    torch.set_num_threads(1)
    learnt = TRAINING_WINDOWS * SIDE_PX**2 * EPOCHS
    judged = TEST_WINDOWS * SIDE_PX**2 * sum(scale**2 for scale in TEST_SCALES)
    hours = {}
    for title, name in (("CNN", "unet"), ("SEUNet", "seunet")):
        pace = pace_of(seunet.create_model(name, classes=CLASSES))
        hours[title] = {
            "training_core_hours": round(learnt * pace.step / 3600),
            "evaluation_core_hours": round(judged * pace.prediction / 3600),
        }
    counts = {"training_windows": TRAINING_WINDOWS, "test_windows": TEST_WINDOWS, "epochs": EPOCHS}
    print(write_results(BENCHMARK, {**counts, "side_px": SIDE_PX, "test_scales": len(TEST_SCALES), "hours": hours}))


if __name__ == "__main__":
    main()
