"""The first image of a fresh install, of a new process and of a running one: two commits in turn, one thread.

    python -m benchmarks.measure.segmentation.cold_start [--before COMMIT] [--rounds N]

The image of the package, 1101 × 1101.  `seunet.segment`: from `import seunet` to the result, with torch loaded before;
`seunet segment`: the whole command.  Without a cache, `NUMBA_CACHE_DIR` is an empty folder; with one, it is what the
run before left (for the command of this commit: what `seunet warm-up` left).  CPU is user and system time of the
process and its children, which a busy machine changes less than the clock.  The smallest of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, source_of, write_results
from seunet.images import encode_png, open_guarded

BENCHMARK = Benchmark(
    "measure.segmentation.cold_start",
    ("results/benchmarks/cold_start.json",),
    5,
    arguments="--before ee4affc",
)
SAMPLE = ROOT / "src" / "seunet" / "samples" / "OS-1-detail.ome.tif"
CALL = """
import json, sys, time
import numpy, torch
from PIL import Image
pixels = numpy.asarray(Image.open(sys.argv[1]))
def lap():
    return time.perf_counter(), time.process_time()
laps = [lap()]
import seunet
for _ in range(2):
    found = seunet.segment(pixels)
    laps.append(lap())
times = [dict(zip(("clock_s", "cpu_s"), (b - a for a, b in zip(*pair)))) for pair in zip(laps, laps[1:])]
print(json.dumps(times))
"""
Times = dict[str, float]


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--before", metavar="COMMIT", help="the commit to compare with")
    made.add_argument("--rounds", type=int, default=3)
    return made


def main() -> None:
    """Measure the two commits in turn and write results/benchmarks/cold_start.json."""
    asked = parser().parse_args()
    found: dict[str, dict[str, list[Times]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = folder / "image.png"
        with closing(open_guarded(SAMPLE)) as sample:
            image.write_bytes(encode_png(sample.read(0, 0, 0, sample.levels[0].width_px, sample.levels[0].height_px)))
        sources = {"now": ROOT / "src"}
        if asked.before:
            sources = {"before": source_of(asked.before, folder / "before"), **sources}
        found = {version: defaultdict(list) for version in sources}
        for turn in range(asked.rounds):
            for version, source in sources.items():
                for row, times in _measured(source, image, folder / f"{version}-{turn}").items():
                    found[version][row].append(times)
    torch_alone = [_run(["-c", "import torch"], {}) for _ in range(asked.rounds)]
    fastest = {version: {row: _smallest(times) for row, times in rows.items()} for version, rows in found.items()}
    figures = {"before_commit": asked.before, "rounds": asked.rounds, "import_torch": _smallest(torch_alone)}
    print(write_results(BENCHMARK, figures | fastest))


def _measured(source: Path, image: Path, folder: Path) -> dict[str, Times]:
    """One round of one version."""
    call = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(folder / "call")}
    first, second = _calls(call, image)
    warm, _ = _calls(call, image)
    command = call | {"NUMBA_CACHE_DIR": str(folder / "command")}
    arguments = ["-m", "seunet", "segment", str(image), "--no-progress", "-o"]
    cold_command = _run([*arguments, str(folder / "cold")], command)
    if (source / "seunet" / "segmentation" / "warm_up.py").is_file():
        command |= {"NUMBA_CACHE_DIR": str(folder / "warmed")}
        warmed = {"warm-up": _run(["-m", "seunet", "warm-up"], command)}
    else:
        warmed = {}
    warm_command = _run([*arguments, str(folder / "warm")], command)
    return {
        "call, no cache": first,
        "call, new process": warm,
        "call, second": second,
        "command, no cache": cold_command,
        "command, new process": warm_command,
    } | warmed


def _calls(environment: dict[str, str], image: Path) -> list[Times]:
    ran = subprocess.run(
        [sys.executable, "-c", CALL, str(image)], env=_one_thread(environment), capture_output=True, check=True
    )
    times: list[Times] = json.loads(ran.stdout)
    return times


def _run(arguments: list[str], environment: dict[str, str]) -> Times:
    before, began = _children_cpu(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=_one_thread(environment), capture_output=True, check=True)
    return {"clock_s": time.perf_counter() - began, "cpu_s": _children_cpu() - before}


def _one_thread(environment: dict[str, str]) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | environment


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _smallest(times: list[Times]) -> Times:
    return {kind: round(min(one[kind] for one in times), 2) for kind in ("clock_s", "cpu_s")}


if __name__ == "__main__":
    main()
