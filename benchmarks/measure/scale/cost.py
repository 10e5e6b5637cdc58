"""What it costs to ask the pixels: its share of a whole `seunet segment`, and its memory on slides of two sizes.

    python -m benchmarks.measure.scale.cost IMAGE... -o OUT

IMAGE is segmented as a user would, into OUT; the slides of the second part are made as they are read.  Writes
results/benchmarks/scale_cost.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.declare import SLIDE, Benchmark
from benchmarks.record import write_results
from seunet.images import ArrayImage, Bounds, RgbArray
from seunet.memory import peak_bytes
from seunet.scale import estimate_slide
from support.made_tissue import made_tissue

BENCHMARK = Benchmark(
    "measure.scale.cost",
    ("results/benchmarks/scale_cost.json",),
    2,
    arguments="CMU-1-Small-Region.svs image.png -o out/cost",
    needs=(SLIDE, "a picture"),
)

SIDES_PX = (10_000, 40_000)
TILE_PX = 1024


class MadeSlide(ArrayImage):
    """A slide of any size: one tile of tissue over and over, made when it is read."""

    def __init__(self, side_px: int) -> None:
        super().__init__(made_tissue(TILE_PX, 0.5))
        self.bounds = Bounds(0, 0, side_px, side_px)

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        rows, columns = np.arange(y, y + height_px) % TILE_PX, np.arange(x, x + width_px) % TILE_PX
        return np.ascontiguousarray(self._pixels[np.ix_(rows, columns)])


def share(image: Path, out: Path) -> dict[str, Any]:
    """Seconds of the estimate and of everything, as run.json has them."""
    folder = out / image.stem
    command = [sys.executable, "-m", "seunet", "segment", str(image), "-o", str(out), "--no-progress", "--overwrite"]
    subprocess.run(command, check=True)
    document = json.loads((folder / "run.json").read_text())
    clock, first = document["clock"], document["image"]["levels"][0]
    seconds = clock["seconds_by_part"]["scale"]
    return {
        "file": image.name,
        "size_px": [first["width_px"], first["height_px"]],
        "estimate": document["scale"]["estimate"],
        "seconds": clock["seconds"],
        "seconds_of_estimate": seconds,
        "share": round(seconds / clock["seconds"], 4),
    }


def memory_mib(side_px: int) -> dict[str, float]:
    """What a process of its own held before and after the estimate, at most."""
    program = f"from benchmarks.measure.scale.cost import peaks; peaks({side_px})"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    before, after = (int(value) / 2**20 for value in found.stdout.split()[-2:])
    return {"before_mib": round(before), "after_mib": round(after), "added_mib": round(after - before)}


def peaks(side_px: int) -> None:
    slide = MadeSlide(side_px)
    before = peak_bytes()
    estimate_slide(slide)
    print(before, peak_bytes())


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("images", type=Path, nargs="+")
    made.add_argument("-o", "--out", type=Path, required=True)
    return made


def main() -> None:
    arguments = parser().parse_args()
    figures = {
        "segment": [share(image, arguments.out) for image in arguments.images],
        "memory": {str(side): memory_mib(side) for side in SIDES_PX},
    }
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
