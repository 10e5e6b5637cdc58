"""What surrounds the image: black, the mean colour or its reflection, and how much windows of other sizes then matter.

    python -m benchmarks.measure.model.surroundings configs/monuseg-cpu-384.yaml

Trains the config once for each (seed and data the same; repeat the command to resume) and scores held-out training
images at s = 1 in windows of three sizes.  Black is the network as it is: images in [0, 1], every layer pads with
zeros.  With the mean colour that of the training images is taken off every pixel, so that the zeros around the image
are it.  With reflection every layer sees its input mirrored at the edges.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch
from torch import Tensor, nn

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.data import WindowDataset, hold_out, read_manifest
from seunet.evaluation import EvaluationSettings, evaluate
from seunet.layers import GaussianConv2d
from seunet.models import ScaleUNet
from seunet.training import Processes, RunFolder, read_config, train

BENCHMARK = Benchmark(
    "measure.model.surroundings",
    ("results/benchmarks/surroundings.json",),
    80,
    arguments="configs/monuseg-cpu-384.yaml",
    needs=("prepared/monuseg",),
)
SIDES_PX: Final = (192, 400, 1000)


@contextmanager
def around_the_mean(colour: Tensor) -> Iterator[None]:
    """Every image less this colour."""
    as_is = ScaleUNet._through

    def through(model: ScaleUNet, images: Tensor, head: nn.Module | None) -> Tensor:
        return as_is(model, images - colour[:, None, None], head)

    with patch.object(ScaleUNet, "_through", through):
        yield


@contextmanager
def reflected() -> Iterator[None]:
    """Every convolution sees its input mirrored at its edges, as far as its filters reach."""
    as_is = GaussianConv2d.forward

    def forward(layer: GaussianConv2d, features: Tensor, beside: Tensor | None = None, **others: Any) -> Tensor:
        far = max(layer.filters()[1])
        more: dict[str, Any] = {} if beside is None else {"beside": mirrored(beside, far)}
        return as_is(layer, mirrored(features, far), **more, **others)[..., far:-far, far:-far].contiguous()

    with patch.object(GaussianConv2d, "forward", forward):
        yield


def mirrored(maps: Tensor, far: int) -> Tensor:
    """So many rows and columns more on all sides, as in mirrors there; small maps are seen in them more than once."""
    for axis in (-2, -1):
        length = maps.shape[axis]
        places = torch.arange(-far, length + far).remainder(max(2 * length - 2, 1))
        maps = maps.index_select(axis, torch.minimum(places, 2 * length - 2 - places).clamp(min=0))
    return maps


def mean_colour(root: Path, names: list[str]) -> Tensor:
    """Of the images that are learnt from."""
    windows = WindowDataset(root, "train", images=names)
    return torch.stack([windows[number].image.mean((1, 2)) for number in range(len(windows))]).mean(0)


def scored(model: Path, root: Path, held_out: tuple[str, ...], out: Path) -> dict[str, float]:
    """IoU of the nuclei in percent by the side of the window, the heads fused by p_ens."""
    found = {}
    for side in SIDES_PX:
        asked = EvaluationSettings(
            split="train", images=held_out, scales=(1.0,), tiles_px=(side, side), fusions=("p_ens",)
        )
        report = evaluate(seunet.load(model), root, out / f"windows-{side}px", asked)
        found[str(side)] = next(round(100 * row["mean"], 2) for row in report["scores"] if row["row"] == "p_ens")
    return found


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("config", type=Path)
    made.add_argument("--runs", type=Path, default=Path("runs/surroundings"))
    made.add_argument("--only", choices=("black", "mean colour", "reflection"))
    return made


def main() -> None:
    """Train, measure, print and write."""
    given = parser().parse_args()
    torch.set_num_threads(1)
    config = read_config(given.config, ["machine.threads=1", "machine.tensorboard=false"])
    root = config.data.root
    if root is None:
        raise SystemExit(f"{given.config}: names several sets; a config with one `data.root` is wanted")
    held = hold_out(read_manifest(root), root, None, config.data.hold_out_every)
    colour = mean_colour(root, [image.name for image in held.learnt_from])
    ways: dict[str, Any] = {
        "black": nullcontext,
        "mean colour": lambda: around_the_mean(colour),
        "reflection": reflected,
    }
    figures = {}
    for name in ways if given.only is None else [given.only]:
        run = RunFolder(given.runs / name.replace(" ", "-"))
        with ways[name]():
            if not run.model.exists():
                train(config, run.root, Processes(0, 1, torch.device("cpu")), resume=run.last.exists())
            figures[name] = scored(run.model, root, tuple(image.name for image in held.images), run.root / "scored")
        print(name, figures[name], flush=True)
    if given.only is None:
        colours = [round(float(value), 4) for value in colour]
        facts = {"held_out": len(held.images), "mean_colour": colours, "iou_percent": figures}
        print(write_results(BENCHMARK, facts))


if __name__ == "__main__":
    main()
