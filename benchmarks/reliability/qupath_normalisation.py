"""What QuPath's normalisation costs: labels of the pixels that its model reconstructs, against those of the image.

    python -m benchmarks.reliability.qupath_normalisation prepared/monuseg prepared/tnbc prepared/consep

The image is the annotation, its upper left 512 × 512 pixels are the tile.  Beside the reconstruction of the model stand
one by steps that takes the high percentile for granted in place of white, one that takes both percentiles for granted,
and the image itself with all values one and five higher.  All are segmented by our own engine, which finds the same
objects as the model in QuPath (`benchmarks.reliability.round_trips`).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from benchmarks.reliability.matrix import overlap
from benchmarks.reliability.round_trips import as_the_extension
from seunet.export import OriginalPixels

BENCHMARK = Benchmark(
    "reliability.qupath_normalisation",
    ("results/benchmarks/qupath_normalisation.json",),
    3,
    "prepared/monuseg prepared/tnbc prepared/consep",
    (MONUSEG, "prepared/cpm17, prepared/tnbc, prepared/consep"),
)
TILE_PX: Final = 512


def reconstructions(tile: torch.Tensor, pixels: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
    """The pixels of a tile [1, 3, H, W] by each way."""
    model = OriginalPixels()
    low, high = (torch.tensor(each)[:, None, None] for each in (model.low, model.high))
    values, by_white = tile[0], model(tile)[0] * 255
    spans = (by_white.amax((1, 2)) - by_white.amin((1, 2))) / (values.amax((1, 2)) - values.amin((1, 2)))
    at_one = by_white.amax((1, 2)) - (values.amax((1, 2)) - 1) * spans
    found = {
        "by steps, the brightest is white": by_white,
        "by steps, a typical high percentile": by_white + (high[:, 0, 0] - at_one).round()[:, None, None],
        "by typical percentiles alone": values * (high - low) + low,
    }
    original = torch.from_numpy(pixels).permute(2, 0, 1).float()
    found |= {f"the image itself, all values {more} higher": original + more for more in (1, 5)}
    return {way: one.clamp(0, 255).round().byte().permute(1, 2, 0).numpy() for way, one in found.items()}


def measured(image: NDArray[np.uint8], mpp: float) -> dict[str, dict[str, float]]:
    """Of each way: IoU of the nuclei, and by how much red, green and blue are off (the median)."""
    pixels = np.ascontiguousarray(image[:TILE_PX, :TILE_PX])
    expected = seunet.segment(pixels, mpp=mpp).labels
    tile = as_the_extension(image)[:, :, :TILE_PX, :TILE_PX]
    found = {}
    for way, one in reconstructions(tile, pixels).items():
        off = np.median(one.astype(int) - pixels, axis=(0, 1))
        found[way] = {
            "iou": overlap(seunet.segment(one, mpp=mpp).labels, expected),
            "red": off[0],
            "green": off[1],
            "blue": off[2],
        }
    return found


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("sets", nargs="+", type=Path)
    made.add_argument("--images", type=int, default=10, help="of each set")
    return made


def main() -> None:
    """Measure, print and write."""
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    sets = {}
    for folder in arguments.sets:
        paths = sorted((folder / "images").glob("*.png"))
        chosen = paths[:: max(1, len(paths) // arguments.images)][: arguments.images]
        images = [measured(np.asarray(Image.open(path).convert("RGB")), 0.25) for path in chosen]
        sets[folder.name] = {
            way: {
                "iou": [round(image[way]["iou"], 4) for image in images],
                "off": [[image[way][colour] for colour in ("red", "green", "blue")] for image in images],
            }
            for way in images[0]
        }
    print(write_results(BENCHMARK, {"sets": sets}))


if __name__ == "__main__":
    main()
