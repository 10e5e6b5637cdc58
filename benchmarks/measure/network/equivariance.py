"""How equivariant random networks are: what the presets, the discretisations and pooling cost, and every model.

    python -m benchmarks.measure.network.equivariance

Smooth random images; Δ is the paper's squared ratio on the interior of the map; of all pairs of scales the best; the
mean over seeds.  A model whose scales are projected away has one pair.  With random weights the logits of some models
are little more than a constant, which every model rescales perfectly: so the table of all models also has Δ of the maps
without their mean, and that is the one to compare by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.evaluation import error_matrix, interior, squared_ratio, without_mean
from seunet.layers import GaussianConv2d
from seunet.maths import SigmaRange, block_starts, equal_range, geometric_range, rescale
from seunet.models import SEUNet
from support.images import band_limited

BENCHMARK = Benchmark(
    "measure.network.equivariance",
    ("results/benchmarks/equivariance.json",),
    5,
)

SEEDS = (0, 1, 2)
SIZE_PX, MARGIN = 128, 0.2
SCALES = (0.5, 2**-0.5, 2**0.5, 2.0)


class Stack(nn.Module):
    """Gaussian layers with ReLU between them: no norm, no pooling."""

    def __init__(self, ranges: Sequence[SigmaRange], discretisation: str, truncation: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            GaussianConv2d(
                3 if n == 0 else 40,
                40,
                sigma_range=each,
                lifting=n == 0,
                discretisation=discretisation,
                truncation=truncation,
            )
            for n, each in enumerate(ranges)
        )

    def forward(self, features: Tensor) -> Tensor:
        for layer in self.layers:
            features = layer(features).relu()
        return features


def best_pair(make: Callable[[], Callable[[Tensor], Tensor]], scale: float, cutoff: float) -> float:
    errors = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        network = make()
        with torch.no_grad():
            matrix = error_matrix(network, network, band_limited(1, SIZE_PX, seed, cutoff), scale, MARGIN)
        errors.append(float(matrix.min()))
    return sum(errors) / len(errors)


def schedules() -> list[dict[str, Any]]:
    """Eight layers: the paper's intervals and geometric ones in every discretisation and truncation."""
    starts = [block_starts(4)[n // 2] for n in range(8)]
    candidates: list[tuple[str, list[SigmaRange], str, float]] = [
        ("paper", [equal_range(start, start + 2.5, 5) for start in starts], "sampled", 2.0)
    ]
    for base in (0.5, 0.7, 1.0):
        for discretisation in ("sampled", "integrated", "discrete"):
            for truncation in (2.0, 2.5, 3.0):
                ranges = [geometric_range(base, math.sqrt(2), 5)] * 8
                candidates.append((f"geometric from σ = {base}", ranges, discretisation, truncation))
    rows = []
    for name, ranges, discretisation, truncation in candidates:

        def make(ranges: list[SigmaRange] = ranges, kind: str = discretisation, cut: float = truncation) -> Stack:
            return Stack(ranges, kind, cut)

        row: dict[str, Any] = {"schedule": name, "discretisation": discretisation, "truncation": truncation}
        for cutoff in (0.05, 0.12):
            row[f"cutoff_{cutoff}"] = {f"{s:g}": round(best_pair(make, s, cutoff), 5) for s in (0.5, 2.0)}
        rows.append(row)
        print(row, flush=True)
    return rows


def at_scale(pooling: str, preset: str) -> float:
    """‖S₂Φ(f) − Φ_{σ×2}(S₂f)‖² / ‖S₂Φ(f)‖² of a U of two levels, head by head."""
    errors = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = seunet.create_model("seunet", preset=preset, pooling=pooling, widths=(20, 40)).eval()
        assert isinstance(model, SEUNet)
        images = band_limited(1, SIZE_PX, seed)
        with torch.no_grad():
            target = rescale(model(images).flatten(1, 2), 2.0)
            actual = model.at_scale(2.0)(rescale(images, 2.0)).flatten(1, 2)
        errors.append(float(squared_ratio(interior(target, MARGIN), interior(actual, MARGIN))))
    return sum(errors) / len(errors)


def every_model() -> dict[str, dict[str, dict[str, float]]]:
    """Whole networks of the paper's depth at a third of its width, random weights."""
    options: dict[str, Any] = {"widths": (20, 40, 80, 160, 320)}
    candidates = {name: (name, "paper") for name in seunet.list_models()}
    candidates["seunet geometric"] = ("seunet", "geometric")
    table: dict[str, dict[str, dict[str, float]]] = {}
    for label, (name, preset) in candidates.items():

        def make(name: str = name, preset: str = preset) -> Callable[[Tensor], Tensor]:
            return seunet.create_model(name, preset=preset, **options).eval()

        def make_centred(make: Callable[[], Callable[[Tensor], Tensor]] = make) -> Callable[[Tensor], Tensor]:
            network = make()
            return lambda images: without_mean(network(images))

        table[label] = {
            "as_in_the_paper": {f"{s:.2f}": round(best_pair(make, s, 0.05), 4) for s in SCALES},
            "without_mean": {f"{s:.2f}": round(best_pair(make_centred, s, 0.05), 4) for s in SCALES},
        }
        values = [value for row in table[label].values() for value in row.values()]
        print(f"  {label:20}" + "".join(f"{value:10.4f}" for value in values), flush=True)
    return table


def main(given: Sequence[str] | None = None) -> None:
    BENCHMARK.parser(__doc__).parse_args(given)
    torch.set_num_threads(2)
    print("\neight layers without pooling, best pair of scales:")
    report: dict[str, Any] = {"eight_layers": schedules()}
    print("\nat_scale(2) on the doubled image against the doubled output:")
    report["at_scale_2"] = {
        preset: {pooling: round(at_scale(pooling, preset), 5) for pooling in ("none", "average", "max")}
        for preset in ("paper", "geometric")
    }
    print(" ", report["at_scale_2"])
    print(
        f"\nevery model, random weights, then without the mean:\n  {'s':20}" + "".join(f"{s:10.2f}" for s in SCALES * 2)
    )
    report["every_model"] = every_model()
    write_results(BENCHMARK, report)


if __name__ == "__main__":
    main()
