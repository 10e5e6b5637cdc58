"""The matched head of `nuclei` by every runtime, in turn on one thread: time against our own kernels, and the logits.

    python -m benchmarks.measure.network.runtimes

The processor's time in the program itself, the least of the rounds: other programs may run beside it.  Beside it, with
what the system adds, such as getting memory page by page, which depends on the state of the machine.
"""

from __future__ import annotations

import argparse
import math
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.export import BLOCK, by_onnx, onnx_model, portable_network, run_by

BENCHMARK = Benchmark("measure.network.runtimes", ("results/benchmarks/runtimes.json",), 2)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--sizes", type=int, nargs="+", default=[256, 511, 1024])
    made.add_argument("--rounds", type=int, default=8)
    return made


def ways() -> dict[str, Callable[[Any], Any]]:
    """The same head by each runtime: RGB [1, 3, H, W] → logits."""
    model: Any = seunet.load("nuclei")
    head = model.only_scale(model.card.matched_head - 1)
    scripted = torch.jit.freeze(torch.jit.script(portable_network(head).heads[0].eval()))
    return {
        "native": lambda images: head(torch.from_numpy(images)).numpy(),
        "onnx, told the size": run_by("onnx", head, 1),
        "onnx": by_onnx(onnx_model(portable_network(head, multiple=BLOCK), {}), 1),
        "openvino": run_by("openvino", head, 1),
        "torchscript": lambda images: scripted(torch.from_numpy(images)).numpy()[:, None],
    }


def measured(size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Of each runtime: the fastest pass, as a multiple of ours too, and the largest difference of a logit."""
    runs = ways()
    images = np.random.default_rng(0).random((1, 3, size, size), dtype=np.float32)
    best, worst = dict.fromkeys(runs, (math.inf, math.inf)), dict.fromkeys(runs, 0.0)
    with torch.inference_mode():
        expected = runs["native"](images)
        for _ in range(rounds):
            for name, run in runs.items():
                began = resource.getrusage(resource.RUSAGE_SELF)
                found = run(images)
                ended = resource.getrusage(resource.RUSAGE_SELF)
                user, system = ended.ru_utime - began.ru_utime, ended.ru_stime - began.ru_stime
                best[name] = min(best[name][0], user), min(best[name][1], user + system)
                worst[name] = max(worst[name], float(np.abs(found - expected).max()))
    return {
        name: {
            "fastest_ms": round(1000 * best[name][0], 1),
            "ratio": round(best[name][0] / best["native"][0], 3),
            "ratio_with_system": round(best[name][1] / best["native"][1], 3),
            "largest_difference": worst[name],
        }
        for name in runs
    }


if __name__ == "__main__":
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    rows = {str(size): measured(size, arguments.rounds) for size in arguments.sizes}
    print(write_results(BENCHMARK, {"rounds": arguments.rounds, "sizes": rows}))
