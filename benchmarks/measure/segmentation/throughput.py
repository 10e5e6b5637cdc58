"""Megapixels a second of `seunet segment`: the shipped SEUNet and a plain UNet at the paper's widths, in turn.

    python -m benchmarks.measure.segmentation.throughput [--side PX]... [--rounds N] [--threads N] [--model nuclei]

The same image of real tissue (scikit-image's immunohistochemistry picture and its mirror images) through the same
pipeline, from the file to all files of the result; the SEUNet with all its heads, and with the scale stated, when one
head is enough.  The UNet has fresh weights, set to find nothing: its network takes
as long as a trained one, its results take no time, which is in its favour.  All are run once to warm up and then in
turns: a busy spell of the machine spoils a round and not a model.  CPU time is that of this process, by one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import seunet
from benchmarks.declare import SKIMAGE, Benchmark
from benchmarks.measure.segmentation.slides import tissue_field, weights
from benchmarks.record import write_results
from seunet.memory import keep_freed_memory
from seunet.models import ModelCard
from seunet.segmentation import Choices, Item, segment_file

BENCHMARK = Benchmark(
    "measure.segmentation.throughput",
    ("results/benchmarks/throughput.json",),
    10,
    arguments="--threads 1",
    needs=(SKIMAGE,),
)

SIDES_PX = (2048,)
ROUNDS = 3
AIM = 4.0


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--side", type=int, action="append")
    made.add_argument("--rounds", type=int, default=ROUNDS)
    made.add_argument("--threads", type=int, default=torch.get_num_threads())
    made.add_argument("--model", default="nuclei")
    return made


def main() -> None:
    """Measure every size and write results/benchmarks/throughput.json."""
    asked = parser().parse_args()
    keep_freed_memory()
    torch.set_num_threads(asked.threads)
    with tempfile.TemporaryDirectory() as folder:
        models = {
            "seunet, scale known": Choices(model=asked.model, mpp=trained_at(asked.model), scale="stated"),
            "seunet": Choices(model=asked.model, scale="native"),
            "unet": Choices(model=str(plain_unet(Path(folder) / "unet")), scale="native"),
        }
        sizes = [compared(Path(folder), side, asked.rounds, models) for side in asked.side or SIDES_PX]
    print(write_results(BENCHMARK, {"threads": asked.threads, "weights": weights(asked.model), "sizes": sizes}))


def trained_at(model: str) -> float | None:
    """µm per pixel of the images it learnt from: at this, pixels are taken as they are and one head is enough."""
    card = seunet.load(model).card
    return None if card is None else card.mpp


def plain_unet(folder: Path) -> Path:
    """The UNet of the paper, as a model folder."""
    model = seunet.create_model("unet", classes=2).eval()
    with torch.no_grad():
        model.head.convolution.bias.copy_(torch.tensor([50.0, -50.0]))  # type: ignore[union-attr]
    model.card = ModelCard(class_names=("background", "nucleus"), instances=True)
    model.save_pretrained(folder)
    return folder


def tissue_image(folder: Path, side_px: int) -> Path:
    """A square of real tissue."""
    path = folder / f"tissue-{side_px}.png"
    block = tissue_field(None)
    times = -(-side_px // len(block))
    Image.fromarray(np.tile(block, (times, times, 1))[:side_px, :side_px]).save(path)
    return path


def compared(folder: Path, side_px: int, rounds: int, models: dict[str, Choices]) -> dict[str, Any]:
    """All of them on one image, round after round."""
    path = tissue_image(folder, side_px)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    for turn in range(rounds + 1):
        for name, choices in models.items():
            run = timed(path, folder / name / f"out-{side_px}", choices)
            print(side_px, turn, name, run, flush=True)
            if turn:
                runs[name].append(run)
    rows = {name: summary(found, side_px**2 / 1e6) for name, found in runs.items()}
    return {"side_px": side_px, "rounds": rounds, "aim": AIM, "models": rows}


def timed(path: Path, out: Path, choices: Choices) -> dict[str, float]:
    """One run of the pipeline: seconds in all, of CPU, and by part."""
    choices = choices.model_copy(update={"tissue": False, "overwrite": True})
    began, cpu = time.monotonic(), time.process_time()
    segment_file(Item(path, None, path.stem), out, choices)
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu
    parts = json.loads((out / path.stem / "run.json").read_text())["clock"]["seconds_by_part"]
    named = {"reading": parts["reading"], "network": parts["network"], "writing": parts["results"]}
    return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3), **named}


def summary(runs: list[dict[str, float]], megapixels: float) -> dict[str, Any]:
    """Rates, and the share of each part of the median run; writing is what is left when all is computed."""
    middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    parts = {name: middle[name] for name in ("reading", "network", "writing")}
    return {
        "fastest_mpx_per_s": round(megapixels / min(run["seconds"] for run in runs), 4),
        "median_mpx_per_s": round(megapixels / statistics.median(run["seconds"] for run in runs), 4),
        "mpx_per_cpu_s": round(megapixels / min(run["cpu_seconds"] for run in runs), 4),
        "network_mpx_per_s": round(megapixels / min(run["network"] for run in runs), 4),
        "shares": {name: round(value / sum(parts.values()), 4) for name, value in parts.items()},
    }


if __name__ == "__main__":
    main()
