"""How far a trained network really looks: what a cut through the image changes, by the distance from the cut.

    python -m benchmarks.measure.network.reach IMAGES NAME=MODEL...

IMAGES is a folder of pictures, put side by side to be large enough; MODEL is a folder of a SEUNet.  For each head, with
σ × ½, 1 and 2, the image is cut off at a column, as at the edge of a tile, and the probabilities before the cut are
compared with those of the whole.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.images import decode_rgb, read_image
from seunet.models import SEUNet
from seunet.segmentation import filter_radii, receptive_radius

BENCHMARK = Benchmark(
    "measure.network.reach",
    ("results/benchmarks/reach.json",),
    10,
    arguments="images trained=runs/seunet/model 'little trained=runs/seunet-short/model'",
    needs=("a picture", "two networks"),
)

FACTORS = (0.5, 1.0, 2.0)
HEIGHT_PX = 512
MULTIPLES = (3, 4, 5, 6)
TOLERANCE = 1e-5


def mosaic(folder: Path, width: int) -> Tensor:
    """Real tissue, [1, 3, HEIGHT_PX, width] from 0 to 1."""
    rows: list[Any] = []
    for path in sorted(folder.glob("*.png")):
        rows.append(decode_rgb(read_image(path), path.name).pixels[:HEIGHT_PX])
        if sum(part.shape[1] for part in rows) >= width:
            break
    return torch.from_numpy(np.concatenate(rows, axis=1)[:, :width]).permute(2, 0, 1)[None].float() / 255


def composed_deviation(model: SEUNet) -> float:
    """√Σ (σ · stride)² over the layers: the standard deviation of all filters of one head in a row."""
    levels = len(model.config.widths) - 1
    strides = [2**level for level in (*range(levels + 1), *range(levels - 1, -1, -1)) for _ in range(2)]
    sigmas = model.sigmas().detach()[:, 0].tolist()
    return math.sqrt(sum((sigma * stride) ** 2 for sigma, stride in zip(sigmas, strides, strict=True)))


def changes(model: SEUNet, images: Tensor, cut: int) -> list[float]:
    """The largest change of a probability at each distance from the cut or beyond."""
    with torch.inference_mode():
        whole, part = model(images).softmax(2)[..., :cut], model(images[..., :cut]).softmax(2)
        by_column = (whole - part).abs().amax((0, 1, 2, 3))
    return torch.cummax(by_column, dim=0).values.flip(0).tolist()


def head_figures(model: SEUNet, folder: Path) -> dict[str, Any]:
    exact, deviation = receptive_radius(filter_radii(model)), composed_deviation(model)
    cut = -(-(exact + 32) // 16) * 16
    found = changes(model, mosaic(folder, 2 * cut), cut)
    needed = next(distance for distance, change in enumerate(found) if change <= TOLERANCE)
    return {
        "exact_px": exact,
        "deviation_px": round(deviation, 1),
        "change_at_deviations": {
            str(multiple): float(f"{found[min(round(multiple * deviation), cut - 1)]:.1e}") for multiple in MULTIPLES
        },
        f"px_to_{TOLERANCE:g}": needed,
        f"deviations_to_{TOLERANCE:g}": round(needed / deviation, 2),
    }


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("images", type=Path)
    made.add_argument("models", nargs="+", metavar="NAME=MODEL", type=lambda text: tuple(text.split("=", 1)))
    return made


def main() -> None:
    asked = parser().parse_args()
    report: dict[str, Any] = {"tolerance": TOLERANCE, "models": {}}
    for name, path in asked.models:
        model = seunet.load(path)
        assert isinstance(model, SEUNet)
        report["models"][name] = rows = {}
        for factor in FACTORS:
            scaled = model.at_scale(factor)
            rows[f"σ × {factor:g}"] = [head_figures(scaled.only_scale(k), asked.images) for k in range(model.heads)]
            print(name, factor, *rows[f"σ × {factor:g}"], sep="\n  ", flush=True)
    write_results(BENCHMARK, report)


if __name__ == "__main__":
    main()
