"""A cohort on a cluster whose workers are killed, and what a scheduler costs per slide.

    python -m benchmarks.reliability.cluster                 # 50 slides, 20 kills; 1,000 tasks
    python -m benchmarks.reliability.cluster --divisor 5     # a fifth of each

Two workers of this machine.  One that has a slide begun is killed (−9) at a random moment, again and again; no slide is
hit more than twice.  Lost: no result.  Doubled: two results.  Other: bytes that are not those of one process.
The tasks of the second part return at once; CPU is that of this process, in which the scheduler and the client run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.declare import Benchmark
from benchmarks.reliability.zeros import measure_rows, parser_with_divisor
from seunet.images import pillow_codec
from seunet.segmentation import Choices, Item, one_after_the_other, over_cluster
from support.slides import tissue_field

BENCHMARK = Benchmark("reliability.cluster", ("results/benchmarks/cluster.json",), 15)

SLIDES, KILLS, TASKS = 50, 20, 1000
SIDE_PX = 640
HITS_PER_SLIDE = 2
MOST_MS = 50
"""What a scheduler may cost per slide."""


def made(folder: Path, count: int) -> list[Item]:
    folder.mkdir()
    for number in range(count):
        pixels = tissue_field(SIDE_PX, number)
        (folder / f"{number:02}.png").write_bytes(pillow_codec.encode_png(pixels))
    return [Item(path, 0.25, path.stem) for path in sorted(folder.iterdir())]


def at_work(out: Path) -> Iterator[tuple[int, str]]:
    """Worker processes that hold a slide, and the slide."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            if b"multiprocessing" not in (process / "cmdline").read_bytes():
                continue
            held = [os.readlink(entry) for entry in (process / "fd").iterdir()]
        except OSError:
            continue
        yield from ((int(process.name), Path(path).parent.name) for path in held if path.startswith(f"{out}/"))


class Killer(threading.Thread):
    """Kills whoever is at work, until it has done so often enough or is told to stop."""

    def __init__(self, out: Path, kills: int) -> None:
        super().__init__(daemon=True)
        self.out, self.wanted, self.hits = out, kills, Counter[str]()
        self.random, self.ended = random.Random(0), threading.Event()

    def run(self) -> None:
        while self.hits.total() < self.wanted and not self.ended.wait(self.random.uniform(0.05, 1)):
            victims = [(pid, name) for pid, name in at_work(self.out) if self.hits[name] < HITS_PER_SLIDE]
            if victims:
                pid, name = self.random.choice(victims)
                os.kill(pid, signal.SIGKILL)
                self.hits[name] += 1


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a result but run.json, which holds times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "run.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def killed(scratch: Path, divisor: int) -> dict[str, Any]:
    items = made(scratch / "in", SLIDES // divisor)
    choices, out = Choices(model="nuclei", tile_px=128), scratch / "out"
    killer = Killer(out, KILLS // divisor)
    killer.start()
    found = Counter(result.name for result in over_cluster(items, out, choices, "local", 2) if hasattr(result, "row"))
    killer.ended.set()
    killer.join()
    alone = scratch / "alone"
    for _ in one_after_the_other(items, alone, choices):
        pass
    names = [item.name for item in items]
    return {
        "slides": len(items),
        "kills": killer.hits.total(),
        "slides_hit": len(killer.hits),
        "lost": sum(not found[name] or not (out / name / "run.json").is_file() for name in names),
        "doubled": sum(found[name] > 1 for name in names) + len([*out.iterdir()]) - len(items),
        "other_bytes": sum(contents(out / name) != contents(alone / name) for name in names),
    }


def answered(item: str, passport: str, choices: str) -> str:
    """A worker's answer without work."""
    return json.dumps({"kind": "FileResult", "name": json.loads(item)["name"], "state": "done", "lines": [], "row": {}})


def overhead(scratch: Path, divisor: int) -> dict[str, Any]:
    items = [Item(scratch / f"{number}.png", 0.25, f"{number}") for number in range(TASKS // divisor)]
    coming = over_cluster(items, scratch / "none", Choices(model="nuclei"), "local", 2, task=answered)
    assert next(coming).name  # the cluster is there
    clock, processor = time.perf_counter(), time.process_time()
    count = sum(1 for _ in coming)
    shutil.rmtree(scratch / "none", ignore_errors=True)
    wall_ms = 1000 * (time.perf_counter() - clock) / count
    cpu_ms = 1000 * (time.process_time() - processor) / count
    return {
        "tasks": count,
        "ms_per_slide": round(wall_ms, 2),
        "cpu_ms_per_slide": round(cpu_ms, 2),
        "cpu_ms_above_limit": round(max(0.0, cpu_ms - MOST_MS), 2),
    }


def rows(scratch: Path, divisor: int) -> dict[str, Any]:
    return {"killed": killed(scratch, divisor), "overhead": overhead(scratch, divisor)}


def parser() -> argparse.ArgumentParser:
    return parser_with_divisor(BENCHMARK, __doc__)


if __name__ == "__main__":
    measure_rows(BENCHMARK, parser(), rows, {"lost", "doubled", "other_bytes", "cpu_ms_above_limit"})
