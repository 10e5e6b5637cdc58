"""What a step needs of a graphics card by counting, and what it takes on yours.

    python -m benchmarks.measure.network.device                  # counts on the meta device, which has no values
    python -m benchmarks.measure.network.device --device cuda    # times and memory there; prints a table to paste back
    python -m benchmarks.measure.network.device --device cpu --size 64 --rounds 1    # that the command works

Counted: the memory that a training step keeps for its backward pass, and the operations that reach the device (views
of memory are none).  Measured: forward, training step, the same under autocast and compiled, beside the plain UNet at
the paper's total width, all with the `torch` kernels, interleaved.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import commit, write_results
from benchmarks.timing import interleaved, summary
from seunet.evaluation import markdown_table
from seunet.models import ScaleUNet, SEUNet
from support.host_sync import VIEWS, watched

BENCHMARK = Benchmark("measure.network.device", ("results/benchmarks/device.json",), 1)

MODELS = ("unet", "seunet")
SHAPES = ((4, 3, 128, 128), (2, 3, 256, 256), (8, 3, 384, 384))
LEVELS = (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0)
"""How often the map of each Gaussian layer has been halved."""


def label(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


def loss_of(model: ScaleUNet, images: Tensor) -> Tensor:
    target = torch.zeros(images.shape[0], *images.shape[2:], dtype=torch.long, device=images.device)
    return model.loss(model(images), target)


def kept_mib(model: ScaleUNet, images: Tensor) -> float:
    """What autograd holds between the forward and the backward pass of a step: each piece of memory once."""
    held: dict[int, Tensor] = {}

    def hold(tensor: Tensor) -> Tensor:
        held[tensor.untyped_storage()._cdata] = tensor  # held, so that no other piece gets its number
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        loss_of(model, images)
    return sum(tensor.untyped_storage().nbytes() for tensor in held.values()) / 2**20


def jets_mib(model: SEUNet, shape: Sequence[int]) -> float:
    """The part of the Gaussian layers by hand: the map, its N + 1 filtered rows and the jet of (N + 1)(N + 2)/2."""
    total = 0
    for layer, level in zip(model.gaussian_layers(), LEVELS, strict=True):
        orders = layer.order + 1
        maps = 1 + orders + orders * (orders + 1) // 2
        pixels = (shape[2] >> level) * (shape[3] >> level)
        total += 4 * shape[0] * layer.scales * layer.in_channels * pixels * maps
    return total / 2**20


def launches(run: Callable[[], object]) -> int:
    """Operations that compute: about as many kernels are launched on a card."""
    with watched() as seen:
        run()
    return sum(name not in VIEWS for name in seen.operations)


def counted() -> dict[str, Any]:
    """Nothing is computed: the meta device knows sizes alone."""
    with torch.device("meta"):
        everyone = {name: seunet.create_model(name) for name in MODELS}
    model = everyone["seunet"]
    assert isinstance(model, SEUNet)
    report: dict[str, Any] = {"torch": torch.__version__, "kept_mib": {}, "jets_mib": {}, "operations": {}}
    for shape in SHAPES:
        images = torch.empty(shape, device="meta")
        report["kept_mib"][label(shape)] = {name: round(kept_mib(each, images)) for name, each in everyone.items()}
        report["jets_mib"][label(shape)] = round(jets_mib(model, shape))
    images = torch.empty(SHAPES[0], device="meta")
    for name, each in everyone.items():
        step = launches(lambda each=each: torch.autograd.backward(loss_of(each.train(), images)))  # type: ignore[misc]
        with torch.no_grad():
            forward = launches(lambda each=each: each.eval()(images))  # type: ignore[misc]
        report["operations"][name] = {"forward": forward, "training_step": step}
    return report


def ways(device: str, size_px: int) -> dict[str, Callable[[], None]]:
    """What is timed, by name."""
    made: dict[str, Callable[[], None]] = {}
    half = torch.bfloat16 if device == "cpu" else torch.float16
    for name in MODELS:
        model = seunet.create_model(name).to(device)
        small, images = torch.rand(4, 3, size_px // 2, size_px // 2, device=device), torch.rand(1, 3, size_px, size_px)
        images = images.to(device)
        made |= {
            f"{name} forward": forward(model, model, images),
            f"{name} forward, {half}".replace("torch.", ""): forward(model, model, images, half),
            f"{name} training step": training_step(model, small),
        }
        if device != "cpu":  # where compiling takes many minutes, and nobody uses these kernels
            made[f"{name} forward, compiled"] = forward(model, torch.compile(model), images)
    return made


def finished(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device != "cpu":
        torch.accelerator.synchronize()


def forward(model: ScaleUNet, run: Any, images: Tensor, dtype: torch.dtype | None = None) -> Callable[[], None]:
    device = images.device.type

    def once() -> None:
        model.eval()
        with torch.no_grad(), torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            run(images)
        finished(device)

    return once


def training_step(model: ScaleUNet, images: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def once() -> None:
        model.train()
        optimiser.zero_grad()
        torch.autograd.backward(loss_of(model, images))
        optimiser.step()
        finished(images.device.type)

    return once


def peak_mib(device: str, run: Callable[[], None]) -> int | None:
    """The most that was allocated at once during one more run; only CUDA counts it."""
    if device != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() >> 20


def measured(device: str, size_px: int, rounds: int) -> str:
    """The table to paste back."""
    with seunet.kernel_backend("torch"):
        candidates = ways(device, size_px)
        times = summary(interleaved(candidates, rounds), "unet forward")
        memory = {name: peak_mib(device, run) for name, run in candidates.items()}
    rows = [
        (name, f"{row['median_ms']:.1f}", f"{row['median_ratio']:.3f}", "?" if memory[name] is None else memory[name])
        for name, row in times.items()
    ]
    what = torch.cuda.get_device_name() if device == "cuda" else f"{device}, {platform.machine()}"
    where = f"{what}; torch {torch.__version__}; {size_px} px; {rounds} rounds; commit `{commit()[:12]}`"
    return f"{where}\n\n" + markdown_table(["", "median ms", "× unet forward", "peak MiB"], rows)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--device", choices=("meta", "cpu", "cuda", "mps"), default="meta")
    made.add_argument("--size", type=int, default=512, metavar="PX", help="side of the image; training: half of it")
    made.add_argument("--rounds", type=int, default=12)
    return made


def main(given: Sequence[str] | None = None) -> None:
    asked = parser().parse_args(given)
    print(
        write_results(BENCHMARK, counted())
        if asked.device == "meta"
        else measured(asked.device, asked.size, asked.rounds)
    )


if __name__ == "__main__":
    main()
