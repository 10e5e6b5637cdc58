"""The matched head of `nuclei` by every runtime, in turn on one thread: time against our own kernels, and the logits.

python -m benchmarks.measure.network.runtimes
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import seunet
from seunet.export import portable_network, run_by


def measure(sizes: list[int], rounds: int) -> list[tuple[int, str, float, float]]:
    """(size, runtime, time / that of our kernels, largest difference of a logit), the fastest of the rounds."""
    torch.set_num_threads(1)
    model: Any = seunet.load("nuclei")
    head = model.only_scale(model.card.matched_head - 1)
    scripted = torch.jit.freeze(torch.jit.script(portable_network(head).heads[0].eval()))
    ways: dict[str, Callable[[Any], Any]] = {
        "native": lambda images: head(torch.from_numpy(images)).numpy(),
        "onnx": run_by("onnx", head, 1),
        "openvino": run_by("openvino", head, 1),
        "torchscript": lambda images: scripted(torch.from_numpy(images)).numpy()[:, None],
    }
    rows = []
    for size in sizes:
        images = np.random.default_rng(0).random((1, 3, size, size), dtype=np.float32)
        best, worst = dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, 0.0)
        with torch.inference_mode():
            expected = ways["native"](images)
            for _ in range(rounds):
                for name, way in ways.items():
                    began = time.process_time()
                    found = way(images)
                    best[name] = min(best[name], time.process_time() - began)
                    worst[name] = float(np.abs(found - expected).max())
        rows += [(size, name, best[name] / best["native"], worst[name]) for name in ways]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 511, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| image | runtime | time, native = 1 | largest difference of a logit |\n|---|---|---|---|")
    for size, name, ratio, worst in measure(arguments.sizes, arguments.rounds):
        print(f"| {size}² | {name} | {ratio:.2f} | {worst:.1g} |")
