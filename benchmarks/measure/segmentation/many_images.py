"""A folder of small images, one after the other and two at once, in turn: time, processor time and the bytes.

    python -m benchmarks.measure.segmentation.many_images [--images N] [--rounds N]

Windows of 512 × 512 from the image of the package, with their µm per pixel stated, through the whole command.  Each
process has one thread.  CPU is user and system time of all processes; what two at once lose to each other shows there,
and on a busy machine only there.  The start of a process is measured with a folder of one image.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, write_results
from seunet.images import encode_png, open_guarded

BENCHMARK = Benchmark(
    "measure.segmentation.many_images",
    ("results/benchmarks/many_images.json",),
    10,
)
SAMPLE = ROOT / "src" / "seunet" / "samples" / "OS-1-detail.ome.tif"
SIDE_PX = 512
PROCESSES = (1, 2)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--images", type=int, default=200)
    made.add_argument("--rounds", type=int, default=1)
    return made


def main() -> None:
    """Measure and write results/benchmarks/many_images.json."""
    asked = parser().parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_windows(folder / "one", 1)
        write_windows(folder / "many", asked.images)
        subprocess.run([sys.executable, "-m", "seunet", "warm-up"], check=True, capture_output=True)
        start = _smallest([timed(folder / "one", folder / f"one-{turn}", 1) for turn in range(3)])
        found: dict[int, list[dict[str, float]]] = {processes: [] for processes in PROCESSES}
        bytes_of = set()
        for turn in range(asked.rounds):
            for processes, rows in found.items():
                out = folder / f"{processes}-{turn}"
                rows.append(timed(folder / "many", out, processes))
                bytes_of.add(digest(out))
    best = {str(processes): _smallest(rows) for processes, rows in found.items()}
    figures = {"images": asked.images, "side_px": SIDE_PX, "rounds": asked.rounds, "load": os.getloadavg()[0]}
    print(write_results(BENCHMARK, figures | {"start": start, "processes": best, "same_bytes": len(bytes_of) == 1}))


def write_windows(folder: Path, count: int) -> None:
    """So many windows, each at a place of its own."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    with closing(open_guarded(SAMPLE)) as image:
        width, height = image.levels[0].width_px, image.levels[0].height_px
        for number in range(count):
            x, y = (int(generator.integers(0, side - SIDE_PX)) for side in (width, height))
            (folder / f"{number:04}.png").write_bytes(encode_png(image.read(0, x, y, SIDE_PX, SIDE_PX)))


def timed(images: Path, out: Path, processes: int) -> dict[str, float]:
    """Seconds of one run of the command."""
    options = ["--mpp", "0.23", "--no-progress", "--workers", str(processes), "--threads", str(processes)]
    command = [sys.executable, "-m", "seunet", "segment", str(images), "-o", str(out), *options]
    before, began = _cpu(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return {"clock_s": round(time.perf_counter() - began, 1), "cpu_s": round(_cpu() - before, 1)}


def digest(out: Path) -> str:
    """Of all files but those with clocks in them."""
    found = hashlib.sha256()
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name != "run.json":
            found.update(str(path.relative_to(out)).encode() + path.read_bytes())
    return found.hexdigest()


def _smallest(rows: list[dict[str, float]]) -> dict[str, float]:
    return {kind: min(row[kind] for row in rows) for kind in rows[0]}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
