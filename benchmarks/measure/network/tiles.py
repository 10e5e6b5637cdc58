"""What a tile costs: CPU time a pixel and peak memory, by the size of the tile, at the paper's widths.

    python -m benchmarks.measure.network.tiles   # every row in a process of its own, about ten minutes on one core

Fresh weights: time and memory do not depend on them.  The tile lies in the middle of a slide.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from seunet.memory import keep_freed_memory
from seunet.models import SEUNet
from seunet.segmentation import HeadwiseNetwork, Span

BENCHMARK = Benchmark(
    "measure.network.tiles",
    ("results/benchmarks/tiles.json",),
    10,
)

SLIDE_PX = 40_000
ROWS: tuple[tuple[str, float, tuple[int, int] | None], ...] = (
    ("seunet", 1.0, (1024, 1024)),
    ("seunet", 1.0, (2048, 2048)),
    ("seunet", 1.0, (4096, 2048)),
    ("seunet", 1.0, None),
    ("seunet", 2.0, (2048, 2048)),
    ("seunet", 2.0, None),
    ("unet", 1.0, (1024, 1024)),
    ("unet", 1.0, None),
)


def process_memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) // 1024


def measure(name: str, factor: float, tile: tuple[int, int] | None) -> dict[str, Any]:
    """One tile, in this process."""
    keep_freed_memory()
    model = seunet.create_model(name).eval()
    network = HeadwiseNetwork(model.at_scale(factor) if isinstance(model, SEUNet) else model)
    height, width = tile or network.default_tile
    core, size = (Span(10_000, 10_000 + height), Span(10_000, 10_000 + width)), (SLIDE_PX, SLIDE_PX)
    held = network.seen(core, size)
    pixels = np.random.default_rng(0).integers(0, 256, (held[0].length, held[1].length, 3), dtype=np.uint8)
    small = Span(0, 64)
    network.predict(pixels[:64, :64], (small, small), (small, small), (64, 64))  # compiles
    before, began, wall = process_memory("VmRSS"), time.process_time(), time.monotonic()
    network.predict(pixels, held, core, size)
    seconds = time.process_time() - began
    return {
        "model": name,
        "factor": factor,
        "tile": [height, width],
        "reach_px": network.reach_px,
        "cpu_ns_per_pixel": round(seconds / (height * width) * 1e9),
        "megapixels_per_cpu_second": round(height * width / seconds / 1e6, 3),
        "wall_seconds": round(time.monotonic() - wall, 1),
        "cpu_seconds": round(seconds, 1),
        "peak_mib": process_memory("VmHWM"),
        "before_mib": before,
        "threads": torch.get_num_threads(),
    }


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("row", nargs="?", help=argparse.SUPPRESS)  # as JSON: measured in this process
    return made


def main() -> None:
    if row_alone := parser().parse_args().row:
        print(json.dumps(measure(*json.loads(row_alone))))
        return
    rows = []
    for row in ROWS:
        command = [sys.executable, "-m", "benchmarks.measure.network.tiles", json.dumps(row)]
        rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(rows[-1], flush=True)
    write_results(BENCHMARK, {"torch": torch.__version__, "rows": rows})


if __name__ == "__main__":
    main()
