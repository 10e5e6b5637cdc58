"""The network by the kernels of two commits, in turn, beside a plain UNet of torch's own layers: one thread.

    python -m benchmarks.measure.network.kernel [--before COMMIT] [--rounds N]

Milliseconds of processor time, the smallest of the rounds: a busy machine changes these least.  Each version has a
process of its own, which is told what to do next, so that all take turns in every round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

import seunet
from benchmarks.declare import Benchmark
from benchmarks.measure.network.plain_unet import PlainUNet
from benchmarks.measure.network.speed import multiply_adds
from benchmarks.record import ROOT, source_of, write_results
from seunet.memory import keep_freed_memory

BENCHMARK = Benchmark(
    "measure.network.kernel",
    ("results/benchmarks/kernel.json",),
    4,
    arguments="--before e45b12c",
)
TASKS = ("forward 256", "forward 256 again", "forward 512", "training step")
"""In turn: the first pass finds weights that a step has just changed, the second finds them as they were."""
STEP_SHAPE = (4, 3, 128, 128)
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "plain": PlainUNet,
    "seunet": lambda: seunet.create_model("seunet"),
    "order 2": lambda: seunet.create_model("seunet", order=2),
}


def runs(network: str) -> dict[str, Callable[[], None]]:
    """Each task for this network, to be called."""
    torch.manual_seed(0)
    model = NETWORKS[network]()

    def forward(size_px: int) -> Callable[[], None]:
        images = torch.rand(1, 3, size_px, size_px)

        def run() -> None:
            model.eval()
            with torch.no_grad():
                model(images)

        return run

    images, target = torch.rand(STEP_SHAPE), torch.randint(0, 2, (STEP_SHAPE[0], *STEP_SHAPE[2:]))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        model.train()
        optimiser.zero_grad()
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, target) if network == "plain" else model.loss(logits, target)  # type: ignore[operator]
        loss.backward()
        optimiser.step()

    small = forward(256)
    return dict(zip(TASKS, (small, small, forward(512), step), strict=True))


def serve() -> None:
    """Do what comes in, a network and a task per line, and say how many milliseconds it took."""
    torch.set_num_threads(1)
    keep_freed_memory()
    made: dict[str, dict[str, Callable[[], None]]] = {}
    for line in sys.stdin:
        network, task = json.loads(line)
        if network not in made:
            made[network] = runs(network)
        print(round(1000 * _cpu_seconds(made[network][task]), 2), flush=True)


def _cpu_seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def limits() -> dict[str, float]:
    """What one core of this machine does at its best, in these libraries."""
    square, pixels, maps = torch.rand(1024, 1024), torch.rand(16_000_000), torch.rand(1, 480, 32, 32)
    other, wide = torch.empty_like(pixels), nn.Conv2d(480, 480, 3, padding=1, bias=False)
    with torch.no_grad():
        product, copy, convolution = (
            min(_cpu_seconds(run) for _ in range(8))
            for run in (lambda: square @ square, lambda: other.copy_(pixels), lambda: wide(maps))
        )
    return {
        "matrix_product_gmac_per_second": round(1024**3 / product / 1e9, 1),
        "convolution_gmac_per_second": round(wide.weight.numel() * 32 * 32 / convolution / 1e9, 1),
        "copy_gb_per_second": round(2 * pixels.nbytes / copy / 1e9, 1),
    }


def measured(sources: dict[str, Path], rounds: int) -> dict[str, Any]:
    """The smallest time of each version, network and task."""
    servers = {version: _server(source) for version, source in sources.items()}
    wanted = [("now", "plain"), *((version, network) for network in ("seunet", "order 2") for version in sources)]
    found: dict[str, dict[str, float]] = {f"{network}, {version}": {} for version, network in wanted}
    for turn in range(rounds + 1):
        for task in TASKS:
            for version, network in wanted:
                ms = _ask(servers[version], network, task)
                row = found[f"{network}, {version}"]
                if turn:  # the first is to warm up
                    row[task] = min(ms, row.get(task, ms))
    for server in servers.values():
        server.communicate()
    return found


def _server(source: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", "from benchmarks.measure.network.kernel import serve; serve()"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(server: subprocess.Popen[str], network: str, task: str) -> float:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([network, task]) + "\n")
    server.stdin.flush()
    return float(server.stdout.readline())


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--before", metavar="COMMIT", help="the commit to compare with")
    made.add_argument("--rounds", type=int, default=8)
    return made


def main(given: Sequence[str] | None = None) -> None:
    asked = parser().parse_args(given)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        before = {"before": source_of(asked.before, Path(name))} if asked.before else {}
        rows = measured({**before, "now": ROOT / "src"}, asked.rounds)
    counted = {name: multiply_adds(NETWORKS[name](), 256) for name in ("seunet", "order 2")}  # type: ignore[arg-type]
    report = {"before_commit": asked.before, "rounds": asked.rounds, "ms": rows, "arithmetic_256": counted}
    print(write_results(BENCHMARK, report | {"limits": limits()}))


if __name__ == "__main__":
    main()
