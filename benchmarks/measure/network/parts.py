"""What the parts of the CPU path gain by themselves: the team of threads, pooling, joining, norm with ReLU.

python -m benchmarks.measure.network.parts
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn.functional import batch_norm, max_pool2d

from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from benchmarks.timing import interleaved, summary
from seunet.kernels import batch_norm_relu, join_upsampled, max_pool
from seunet.kernels import threads as team
from seunet.layers import GaussianConv2d
from seunet.maths import upsample_to

BENCHMARK = Benchmark(
    "measure.network.parts",
    ("results/benchmarks/parts.json",),
    1,
)

THREADS, ROUNDS = 2, 40


def threads() -> dict[str, Any]:
    """One small layer right after a parallel operation of torch, by torch's threads, by a pool, and by one thread."""
    layer, image, other = GaussianConv2d(60, 60), torch.rand(1, 5, 12, 64, 64), torch.rand(60, 256, 256)

    def run(threads: int, pool: bool) -> Callable[[], None]:
        def call() -> None:
            with torch.no_grad(), mock.patch.object(team, "team_size", return_value=threads):
                if pool:
                    with mock.patch.object(team, "_openmp_parallel", return_value=None):
                        layer(image)
                else:
                    layer(image)

        return call

    candidates = {"one thread": run(1, False), "a pool of two": run(2, True), "the two threads of torch": run(2, False)}
    # Each candidate is preceded by an operation of torch on both threads, which is not timed but leaves them spinning.
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            other.relu_()
            times[name] += timed_once(call)
    return summary(times, "one thread")


def timed_once(call: Callable[[], None]) -> list[float]:
    """One timed call, without one to warm up: that would let the other threads fall asleep."""
    start = time.perf_counter()
    call()
    return [1000 * (time.perf_counter() - start)]


def maps() -> dict[str, dict[str, Any]]:
    """60 channels at 256² (a batch of 4 at 128² for the norm): ours beside torch."""
    features, rising = torch.rand(1, 5, 12, 256, 256), torch.rand(1, 5, 12, 128, 128)
    batch, weight, bias = torch.rand(4, 60, 128, 128), torch.rand(60), torch.rand(60)

    def norm_by_torch() -> Tensor:
        return batch_norm(batch, None, None, weight, bias, training=True).relu_()

    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "max pooling": (lambda: max_pool(features), lambda: max_pool2d(features.flatten(0, 1), 2)),
        "upsampling and joining": (
            lambda: join_upsampled(features, rising),
            lambda: torch.cat([features, upsample_to(rising, 256, 256)], dim=2),
        ),
        "batch norm and ReLU": (lambda: batch_norm_relu(batch, weight, bias, 1e-5), norm_by_torch),
    }
    return {
        name: summary(interleaved({"ours": ours, "torch": theirs}, ROUNDS), "torch")
        for name, (ours, theirs) in pairs.items()
    }


def main(given: Sequence[str] | None = None) -> None:
    BENCHMARK.parser(__doc__).parse_args(given)
    torch.set_num_threads(THREADS)
    with torch.no_grad():
        report = {"torch": torch.__version__, "threads": threads(), "maps": maps()}
    print(write_results(BENCHMARK, report))


if __name__ == "__main__":
    main()
