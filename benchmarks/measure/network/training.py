"""Training: windows a second and memory of SEUNet beside the plain UNet, and where the time of an epoch goes.

    python -m benchmarks.measure.network.training            # about ten minutes on two quiet cores

Throughput is that of the training step itself (`training.step.Trainer`: loss, backward with the gradients of σ and η,
Adam) at the paper's widths, on 400 × 400 windows, four at a time: the part in which the paper's batch of 20 is worked
through with `recipe.accumulate=5`.  Peak memory is the high-water mark of a process of its own.  The epoch is one of
configs/monuseg-cpu.yaml on real MoNuSeg, if it is there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import seunet
from benchmarks.declare import REAL, Benchmark
from benchmarks.record import ROOT, write_results
from benchmarks.timing import interleaved, summary
from seunet.data.formats import plan_monuseg
from seunet.data.prepare import PrepareSettings, prepare
from seunet.models import ScaleUNet
from seunet.training import (
    Batch,
    Pace,
    Processes,
    RecipeSection,
    Trainer,
    batches,
    loop,
    make_optimizer,
    peak_memory_bytes,
    read_config,
    set_pace,
)
from seunet.training import run_files as keeping
from seunet.training import trainer as step
from support.real_data import real_data

BENCHMARK = Benchmark(
    "measure.network.training",
    ("results/benchmarks/training.json",),
    10,
    needs=(REAL,),
)

THREADS = 2
ROUNDS = 4
WINDOWS, SIDE = 4, 400
ALONE = Processes(0, 1, torch.device("cpu"))


def training_step(name: str) -> Callable[[], None]:
    torch.manual_seed(0)
    model = seunet.create_model(name).train()
    trainer = Trainer(model, make_optimizer(model, 1e-4), ALONE, RecipeSection())
    set_pace(trainer.optimizer, Pace(1e-4, 0.9))
    masks = torch.randint(0, 2, (WINDOWS, SIDE, SIDE))
    batch = Batch(torch.rand(WINDOWS, 3, SIDE, SIDE), masks, torch.arange(WINDOWS), torch.zeros(WINDOWS))

    def run() -> None:
        trainer.gradient(batch)
        trainer.update()

    return run


def throughput() -> dict[str, Any]:
    times = interleaved({name: training_step(name) for name in ("unet", "seunet")}, ROUNDS)
    rows = summary(times, "unet")
    for row in rows.values():
        row["windows_per_second"] = round(1000 * WINDOWS / row["median_ms"], 3)
    memory = {}
    for name in rows:
        command = [sys.executable, "-m", "benchmarks.measure.network.training", "--memory-of", name]
        memory[name] = int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    return {"windows": WINDOWS, "side_px": SIDE, "rounds": ROUNDS, "rows": rows, "peak_memory_mib": memory}


def memory_of(name: str) -> int:
    """MiB that one step adds to what the process had after importing."""
    before = peak_memory_bytes(ALONE.device)
    run = training_step(name)
    run()
    run()
    return (peak_memory_bytes(ALONE.device) - before) >> 20


class Stopwatch:
    """Seconds spent inside functions that are wrapped while it runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, label: str, since: float) -> None:
        self.seconds[label] = self.seconds.get(label, 0.0) + time.perf_counter() - since

    @contextmanager
    def on(self, owner: Any, name: str, label: str) -> Iterator[None]:
        original = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                self.add(label, began)

        with mock.patch.object(owner, name, timed):
            yield

    def watching(self, items: Iterator[Any], label: str) -> Iterator[Any]:
        while True:
            began = time.perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.add(label, began)
            yield item


def epoch_profile(monuseg: Path, scratch: Path) -> dict[str, Any]:
    """Shares of the third epoch's time, validation included."""
    watch = Stopwatch()
    changes = [f"data.root={monuseg}", "recipe.epochs=3", "validation.every_epochs=1", "machine.threads=2"]
    config = read_config(ROOT / "configs" / "monuseg-cpu.yaml", changes)
    began = 0.0

    def watched(*arguments: Any) -> Iterator[Any]:
        nonlocal began
        watch.seconds.clear()  # an epoch begins: only the last one counts
        began = time.perf_counter()
        return watch.watching(iter(batches(*arguments)), "data")

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(loop, "batches", watched))
        for owner, name, label in (
            (ScaleUNet, "forward", "network, forward"),
            (step.LossOf, "forward", "forward and loss"),
            (torch.Tensor, "backward", "network and loss, backward"),
            (Trainer, "update", "optimiser"),
            (loop, "validation_counts", "validation"),
            (keeping.Keeper, "checkpoint", "checkpoint"),
            (keeping.Keeper, "note_step", "log"),
        ):
            stack.enter_context(watch.on(owner, name, label))
        loop.train(config, scratch / "run", ALONE)
        total = time.perf_counter() - began
    seconds = watch.seconds
    # The network also runs in validation: there it is timed by the validation alone.
    in_training = seconds.pop("forward and loss")
    seconds["network and loss, forward"] = in_training
    del seconds["network, forward"]
    seconds["everything else"] = total - sum(seconds.values())
    parts = {name: {"seconds": round(value, 3), "share": round(value / total, 4)} for name, value in seconds.items()}
    return {"config": "configs/monuseg-cpu.yaml", "steps": 48, "seconds": round(total, 2), "parts": parts}


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--memory-of", help=argparse.SUPPRESS)  # a process of its own
    return made


def main() -> None:
    asked = parser().parse_args()
    torch.set_num_threads(THREADS)
    if asked.memory_of:
        print(memory_of(asked.memory_of))
        return
    figures: dict[str, Any] = {"threads": THREADS, "throughput": throughput()}
    data = real_data()
    if data is not None:
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            subprocess.run([sys.executable, str(data / "unpack"), str(scratch / "raw")], check=True)
            prepare(
                plan_monuseg(scratch / "raw" / "monuseg", scratch / "monuseg", PrepareSettings()), scratch / "monuseg"
            )
            figures["epoch"] = epoch_profile(scratch / "monuseg", scratch)
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
