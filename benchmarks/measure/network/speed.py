"""Time and memory of every model at the paper's total width, beside the plain UNet, in one run.

    python -m benchmarks.measure.network.speed            # all of it, about ten minutes on two cores
    python -m benchmarks.measure.network.speed --quick    # fewer rounds, no slow rows

Forward passes are in evaluation mode without autograd; for every model the norms are folded into the convolutions.  A
training step is forward, loss, backward (with the gradients of σ) and an Adam step.  Peak memory is the high-water mark
of a process of its own that does one training step, less what it had after importing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn.functional import conv2d

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from benchmarks.timing import interleaved, summary
from seunet.kernels import reference
from seunet.models import ScaleUNet, SEUNet

BENCHMARK = Benchmark(
    "measure.network.speed",
    ("results/benchmarks/speed.json",),
    10,
)

THREADS = 2
BASE = "unet"
FORWARD_SHAPES = ((1, 3, 256, 256), (1, 3, 512, 512))
STEP_SHAPE = (4, 3, 128, 128)
MEMORY_SHAPES = ((4, 3, 128, 128), (2, 3, 256, 256))
SWEEP_PX = (128, 192, 256, 384, 512, 768, 1024)


def models() -> dict[str, ScaleUNet]:
    torch.manual_seed(0)
    everyone = {name: seunet.create_model(name) for name in (BASE, "seunet", "sesn", "disco", "njet", "gaussder")}
    return everyone | {"seunet geometric": seunet.create_model("seunet", preset="geometric")}


def forward(model: ScaleUNet, images: Tensor) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            model(images)

    return run


def training_step(model: ScaleUNet, shape: tuple[int, ...]) -> Callable[[], None]:
    images, target = torch.rand(shape), torch.randint(0, 2, (shape[0], *shape[2:]))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def run() -> None:
        optimiser.zero_grad()
        torch.autograd.backward(model.loss(model(images), target))
        optimiser.step()

    return run


def forward_times(everyone: dict[str, ScaleUNet], rounds: int) -> dict[str, Any]:
    report = {}
    for shape in FORWARD_SHAPES:
        images = torch.rand(shape)
        times = interleaved({name: forward(model.eval(), images) for name, model in everyone.items()}, rounds)
        report["×".join(map(str, shape))] = summary(times, BASE)
    return report


def reference_times(model: ScaleUNet, rounds: int) -> dict[str, Any]:
    """The same network by the dense kernels and by the fast ones."""

    def with_backend(name: str, images: Tensor) -> Callable[[], None]:
        def run() -> None:
            with seunet.kernel_backend(name), torch.no_grad():
                model(images)

        return run

    report = {}
    for shape in FORWARD_SHAPES:
        images = torch.rand(shape)
        candidates = {name: with_backend(name, images) for name in ("reference", "torch", "numba")}
        candidates["reference, scale by scale"] = scale_by_scale(candidates["reference"])
        report["×".join(map(str, shape))] = summary(interleaved(candidates, rounds), "reference")
    return report


def scale_by_scale(run: Callable[[], None]) -> Callable[[], None]:
    """`run` with a stronger dense form: a convolution for each scale, with filters no larger than that scale needs."""

    def convolution(image: Tensor, coefficients: Tensor, taps: Tensor) -> Tensor:
        results = []
        for scale, half in enumerate(taps):
            radius = int(half[0].nonzero().max())
            filters = reference.dense_filters(half[:, : radius + 1].to(image.dtype), coefficients)
            source = image[:, scale if image.shape[1] > 1 else 0]
            results.append(conv2d(source, filters.flip(2, 3), padding=radius))
        return torch.stack(results, dim=1)

    def patched() -> None:
        with mock.patch.object(reference, "jet_convolution", convolution):
            run()

    return patched


def sweep(model: ScaleUNet, rounds: int) -> list[dict[str, float]]:
    """Forward time over the image size: nanoseconds a pixel stay level where growth is linear."""
    candidates = {str(size): forward(model.eval(), torch.rand(1, 3, size, size)) for size in SWEEP_PX}
    times = interleaved(candidates, rounds)
    return [
        {
            "size_px": size,
            "ms": round(min(times[str(size)]), 2),
            "ns_per_pixel": round(min(times[str(size)]) * 1e6 / size**2),
        }
        for size in SWEEP_PX
    ]


def peak_memory() -> dict[str, Any]:
    report: dict[str, Any] = {}
    for shape in MEMORY_SHAPES:
        label = "×".join(map(str, shape))
        report[label] = {}
        for name in ("unet", "seunet"):
            command = [sys.executable, "-m", "benchmarks.measure.network.speed", "--memory-of", name, *map(str, shape)]
            result = subprocess.run(command, capture_output=True, text=True, check=True)
            report[label][name] = round(float(result.stdout))
    return report


def print_memory(name: str, shape: tuple[int, ...]) -> None:
    """MiB that one training step takes on top of the imported libraries."""
    torch.set_num_threads(THREADS)
    # The loops are compiled (or read from the cache on disk) first: the compiler's memory is not the step's.
    training_step(seunet.create_model(name, widths=(10, 20)), (1, 3, 16, 16))()
    before = process_memory("VmRSS")
    step = training_step(seunet.create_model(name), shape)
    for _ in range(2):
        step()
    print(process_memory("VmHWM") - before)


def process_memory(field: str) -> float:
    """MiB now (VmRSS) or at the most so far (VmHWM).  `getrusage` would count the parent's memory before the exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def multiply_adds(model: SEUNet, size_px: int) -> dict[str, float]:
    """Billions of multiply-adds of a forward pass; those of mirrored taps counted once."""
    mixing = filtering = 0.0
    levels = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    for layer, level in zip(model.gaussian_layers(), levels, strict=True):
        pixels = (size_px >> level) ** 2
        mixing += layer.scales * layer.coefficients.numel() * pixels
        for radius in layer.filters()[1]:
            # Two horizontal and three vertical passes, each a multiply-add for every pair of mirrored taps.
            filtering += layer.in_channels * pixels * (layer.order + 1) * (layer.order + 4) / 2 * (radius + 1)
    return {"mixing_gmac": round(mixing / 1e9, 2), "filtering_gmac": round(filtering / 1e9, 2)}


def arithmetic(model: SEUNet, size_px: int) -> dict[str, float]:
    """Multiply-adds of a forward pass, and how long they would take at the speed of a large matrix product."""
    counted = multiply_adds(model, size_px)
    square = torch.rand(2048, 2048)
    seconds = min(interleaved({"product": lambda: square @ square}, 5)["product"]) / 1000
    rate = 2048**3 / seconds / 1e9
    return counted | {
        "matrix_product_gmac_per_second": round(rate, 1),
        "bound_ms": round(sum(counted.values()) / rate * 1000, 1),
    }


def print_table(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}\n  {'':28}{'fastest':>12}{'ratio':>9}{'median':>12}{'ratio':>9}")
    for name, row in rows.items():
        print(
            f"  {name:28}{row['fastest_ms']:9.1f} ms{row['fastest_ratio']:9.3f}"
            f"{row['median_ms']:9.1f} ms{row['median_ratio']:9.3f}",
            flush=True,
        )


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--quick", action="store_true", help="fewer rounds, no slow rows; writes nothing")
    made.add_argument("--memory-of", nargs="+", help=argparse.SUPPRESS)  # a process of its own: the model, the shape
    return made


def main(given: Sequence[str] | None = None) -> None:
    asked = parser().parse_args(given)
    if asked.memory_of:
        print_memory(asked.memory_of[0], tuple(map(int, asked.memory_of[1:])))
        return
    quick: bool = asked.quick
    torch.set_num_threads(THREADS)
    everyone, rounds = models(), 4 if quick else 12
    seunet_model = everyone["seunet"]
    assert isinstance(seunet_model, SEUNet)
    report: dict[str, Any] = {"torch": torch.__version__, "threads": THREADS, "rounds": rounds}
    report["forward"] = forward_times(everyone, rounds)
    for shape, rows in report["forward"].items():
        print_table(f"forward {shape}, relative to the plain UNet", rows)
    steps = {name: training_step(model.train(), STEP_SHAPE) for name, model in everyone.items()}
    report["training_step"] = {"×".join(map(str, STEP_SHAPE)): summary(interleaved(steps, rounds), BASE)}
    for shape, rows in report["training_step"].items():
        print_table(f"training step {shape}, relative to the plain UNet", rows)
    report["reference"] = reference_times(seunet_model.eval(), 1 if quick else 3)
    for shape, rows in report["reference"].items():
        print_table(f"SEUNet forward {shape}, relative to the dense reference kernels", rows)
    report["arithmetic_256"] = arithmetic(seunet_model, 256)
    print("\narithmetic of a 256×256 forward pass:", report["arithmetic_256"])
    report["sweep"] = sweep(seunet_model, 3)
    print("\nSEUNet forward over the image size:")
    for row in report["sweep"]:
        print(f"  {row['size_px']:5} px {row['ms']:9.1f} ms {row['ns_per_pixel']:8} ns per pixel")
    report["peak_memory_mib"] = peak_memory()
    print("\npeak memory of a training step, MiB:", report["peak_memory_mib"])
    if not quick:
        write_results(BENCHMARK, report)


if __name__ == "__main__":
    main()
