"""What varying windows costs beside the step that learns from them, on one thread.

python -m benchmarks.measure.data.augmentation prepared/monuseg
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from seunet import create_model
from seunet.data import Augmentation, OpticsShares, WindowDataset

BENCHMARK = Benchmark(
    "measure.data.augmentation",
    ("results/benchmarks/augmentation.json",),
    1,
    arguments="prepared/monuseg",
    needs=(MONUSEG,),
)

CROP_PX, WINDOWS, STEPS = 256, 60, 3
PLAIN = Augmentation(crop_px=CROP_PX, scale_range=(0.25, 4.0), stain_jitter=0.3)
VARIED = Augmentation(
    crop_px=CROP_PX,
    scale_range=(0.25, 4.0),
    stain_jitter=0.3,
    turns=True,
    averaging=0.5,
    stain_mix=0.7,
    optics=OpticsShares(blur=0.35, sharpen=0.15, resample=0.25, noise=0.25, jpeg=0.35),
)
"""As in configs/nuclei-2.yaml."""


def windows_ms(root: Path, rules: Augmentation) -> float:
    """Processor time per window."""
    windows = WindowDataset(root, "train", augmentation=rules)
    windows.preload()
    return _ms(lambda: [windows[1, number] for number in range(WINDOWS)]) / WINDOWS


def step_ms() -> float:
    """Processor time per window of a step of the network of `nuclei`, each window for one head."""
    model = create_model("seunet", preset="geometric", head_weights="uniform").train()
    images, masks = torch.rand(1, 5, 3, CROP_PX, CROP_PX), torch.zeros(1, 5, CROP_PX, CROP_PX, dtype=torch.int64)

    def step() -> None:
        logits = model(images)
        torch.autograd.backward(torch.nn.functional.cross_entropy(logits.flatten(0, 1), masks.flatten(0, 1)))

    step()
    return float(np.median([_ms(step) for _ in range(STEPS)])) / 5


def _ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    return made


def main() -> None:
    """Measure, print and write."""
    prepared = parser().parse_args().prepared
    torch.set_num_threads(1)
    figures = {"plain_ms": windows_ms(prepared, PLAIN), "varied_ms": windows_ms(prepared, VARIED), "step_ms": step_ms()}
    print(write_results(BENCHMARK, {"crop_px": CROP_PX, **{name: round(value, 2) for name, value in figures.items()}}))


if __name__ == "__main__":
    main()
