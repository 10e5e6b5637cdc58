"""`seunet segment` with one head: megapixels per CPU second against a plain UNet, what writing adds by the clock, and
what several threads gain; this commit and an earlier one in turn.

    python -m benchmarks.measure.segmentation.one_head [--before COMMIT] [--rounds N] [--side PX]

The image is that of `throughput`: real tissue, with its µm per pixel stated.  Each candidate is a process that waits
for its turn, so that a busy spell of the machine spoils a round and not a candidate; CPU time is that of its process,
with one thread.  *Writing* is the time by the clock from the last computed pixel to the last file.  Stages are CPU
seconds of this commit's functions, in whatever thread.  Takes three minutes on a quiet machine; the clock means little
on another one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.declare import SKIMAGE, Benchmark
from benchmarks.measure.segmentation.throughput import plain_unet, tissue_image, trained_at
from benchmarks.record import ROOT, source_of, write_results
from benchmarks.stages import counted
from seunet.memory import keep_freed_memory
from seunet.segmentation import Choices, Item, segment_file

BENCHMARK = Benchmark(
    "measure.segmentation.one_head",
    ("results/benchmarks/one_head.json",),
    3,
    arguments="--before e45b12c",
    needs=(SKIMAGE,),
)
SIDE_PX = 1024
ROUNDS = 4
THREADS = 2
CHILD = """
import json, sys, time
from pathlib import Path
import torch
from seunet.memory import keep_freed_memory
from seunet.segmentation import Choices, Item, segment_file
keep_freed_memory()
image, out, choices = Path(sys.argv[1]), Path(sys.argv[2]), Choices(**json.loads(sys.argv[3]))
for line in sys.stdin:
    torch.set_num_threads(int(line))
    began, cpu = time.perf_counter(), time.process_time()
    segment_file(Item(image, None, image.stem), out, choices)
    times = {"clock_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    parts = json.loads((out / image.stem / "run.json").read_text())["clock"]["seconds_by_part"]
    print(json.dumps({**times, "labelling_s": parts["total"], "writing_s": parts["results"]}), flush=True)
"""
STAGES = {
    "kernels": ("seunet.kernels.threads:run",),
    "rest of the network": ("seunet.segmentation.tiled.tile_predictor:HeadwiseNetwork.predict",),
    "fusion": ("seunet.maths.prediction:fuse_rows",),
    "planes and ledger": tuple(f"seunet.segmentation.tiled.tile_loop:TileLoop.{name}" for name in ("_write", "_seal")),
    "finding objects": ("seunet.segmentation.one_file:write_objects",),
    "splitting": ("seunet.results.splitting:split_objects",),
    "outlines": ("seunet.results.outlines:trace_objects",),
    "digits": ("seunet.results.texts:coordinates_texts", "seunet.results.texts:numbers_between"),
    "features and table": ("seunet.results.geojson:features",),
    "thumbnail": ("seunet.segmentation.one_file:thumbnail",),
    "labels.tif": ("seunet.results.write:write_label_tiff",),
    "overlay": ("seunet.results.write:overlay_picture",),
    "overlay as PNG": ("seunet.results.write:write_overlay",),
}
Run = dict[str, float]


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--before", metavar="COMMIT", help="the commit to compare with")
    made.add_argument("--rounds", type=int, default=ROUNDS)
    made.add_argument("--side", type=int, default=SIDE_PX)
    return made


def main() -> None:
    """Measure and write results/benchmarks/one_head.json."""
    asked = parser().parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = tissue_image(folder, asked.side)
        one_head: dict[str, Any] = {"model": "nuclei", "mpp": trained_at("nuclei"), "scale": "stated"}
        unet: dict[str, Any] = {"model": str(plain_unet(folder / "unet")), "scale": "native"}
        candidates = {"now": (ROOT / "src", one_head, 1), f"now, {THREADS} threads": (ROOT / "src", one_head, THREADS)}
        if asked.before:
            candidates["before"] = source_of(asked.before, folder / "before"), one_head, 1
        alone = {name: each for name, each in candidates.items() if name in ("now", "before")}
        candidates["unet"] = ROOT / "src", unet, 1
        runs = in_turn(image, folder, candidates, asked.rounds)
        larger = in_turn(tissue_image(folder, 2 * asked.side), folder, alone, asked.rounds)
        stages = stage_seconds(image, folder / "stages", one_head)
    figures = {name: summary(rows, asked.side**2 / 1e6) for name, rows in runs.items()}
    facts = {"before_commit": asked.before, "rounds": asked.rounds, "side_px": asked.side, "load": os.getloadavg()[0]}
    twice = {name: summary(rows, 4 * asked.side**2 / 1e6) for name, rows in larger.items()}
    found = {"candidates": figures, "twice_as_large": twice, "threads": THREADS, "stages_cpu_s": stages}
    print(write_results(BENCHMARK, facts | found))


def in_turn(
    image: Path, folder: Path, candidates: dict[str, tuple[Path, dict[str, Any], int]], rounds: int
) -> dict[str, list[Run]]:
    """Runs of all candidates, in turn, after one of each to warm up."""
    children = {}
    for name, (source, options, _) in candidates.items():
        words = json.dumps(options | {"tissue": False, "overwrite": True})
        command = [sys.executable, "-c", CHILD, str(image), str(folder / f"out {name}"), words]
        environment = os.environ | {"PYTHONPATH": str(source), "OMP_WAIT_POLICY": "passive"}
        pipe = subprocess.PIPE
        children[name] = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
    runs: dict[str, list[Run]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, child in children.items():
            if child.stdin is None or child.stdout is None:
                raise ValueError("a candidate has no pipes")
            child.stdin.write(f"{candidates[name][2]}\n")
            child.stdin.flush()
            run = json.loads(child.stdout.readline())
            print(turn, name, run, flush=True)
            runs[name] += [run] if turn else []
    for child in children.values():
        child.communicate()
    return runs


def summary(runs: list[Run], megapixels: float) -> Run:
    """The smallest CPU and clock, and the smallest share of writing of a run."""
    shares = [run["writing_s"] / (run["labelling_s"] + run["writing_s"]) for run in runs]
    return {
        "mpx_per_cpu_s": round(megapixels / min(run["cpu_s"] for run in runs), 4),
        "cpu_s": round(min(run["cpu_s"] for run in runs), 3),
        "clock_s": round(min(run["clock_s"] for run in runs), 3),
        "writing_share": round(min(shares), 4),
        "median_writing_share": round(sorted(shares)[len(shares) // 2], 4),
    }


def stage_seconds(image: Path, out: Path, options: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of each stage, the smallest of three runs."""
    keep_freed_memory()
    torch.set_num_threads(1)
    choices = Choices(**options, tissue=False, overwrite=True)
    found = []
    for _ in range(4):
        began = time.process_time()
        with counted(STAGES) as seconds:
            segment_file(Item(image, None, image.stem), out, choices)
        found.append({**seconds, "all else": time.process_time() - began - sum(seconds.values())})
    return {stage: round(min(run.get(stage, 0.0) for run in found[1:]), 4) for stage in (*STAGES, "all else")}


if __name__ == "__main__":
    main()
