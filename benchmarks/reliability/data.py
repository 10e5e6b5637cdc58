"""The rows of RELIABILITY on data, in full: `make reliability` (about five minutes on two cores).

Mutants go through the same worker processes as a user's files.  A figure that is not what it must be ends the
run with exit code 1 after everything was measured and written.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.declare import Benchmark
from benchmarks.reliability.zeros import measure_rows, parser_with_divisor
from seunet.data import verify
from seunet.data.formats import plan_monuseg
from seunet.data.prepare import Job, JobOutcome, PrepareSettings, make_plan, prepare, run_jobs
from seunet.maths import ring_pixels
from support.datasets import he_pixels, tree_bytes, write_image, write_monuseg
from support.faults import FAULTS, plant
from support.interruption import end_after, finish, start
from support.mutants import hostile_xml, image_mutants, png_bomb, tiff_bomb, xml_mutants
from support.ring_oracle import covered_exactly, random_ring

BENCHMARK = Benchmark(
    "reliability.data",
    ("results/benchmarks/reliability_data.json",),
    5,
)

BATCH = 1000
LIMIT_SECONDS = 20.0
XML_SECONDS = 2.0
XML_BYTES = 300 * 2**20
BOMB_SECONDS = 1.0


def parser() -> argparse.ArgumentParser:
    return parser_with_divisor(BENCHMARK, __doc__)


def main() -> None:
    """Measure every row; the counts can be divided for a trial."""
    measure_rows(BENCHMARK, parser(), rows, MUST)


def rows(scratch: Path, divisor: int) -> dict[str, Any]:
    return {
        "xml": xml_figures(scratch, 10_000 // divisor),
        "rings": ring_figures(5_000 // divisor),
        "images": image_figures(scratch, 10_000 // divisor),
        "verify": verify_figures(scratch, 500 // divisor),
        "interruption": kill_figures(scratch, 100 // divisor),
    }


MUST = {
    "tracebacks",
    "hangs",
    "slow",
    "over_memory",
    "not_one_line",
    "lost_regions",
    "differing",
    "missed",
    "alarms",
    "not_exit_2",
}
"""Figures that must be 0."""


def outcomes_of(jobs: list[Job]) -> Iterator[JobOutcome]:
    """All outcomes, in the order of the jobs, from two workers."""
    yield from sorted(run_jobs(jobs, workers=2, limit_seconds=LIMIT_SECONDS), key=lambda outcome: outcome.number)


def count(outcomes: Iterable[JobOutcome], slow_seconds: float) -> Counter[str]:
    """What became of mutants."""
    total: Counter[str] = Counter(accepted=0, refused=0, tracebacks=0, hangs=0, slow=0, not_one_line=0, not_exit_2=0)
    for outcome in outcomes:
        total["files"] += 1
        total["slow"] += outcome.seconds > slow_seconds
        if outcome.error is None:
            total["accepted"] += 1
            continue
        line = str(outcome.error)
        total["refused"] += 1
        total["tracebacks"] += outcome.error.exit_code == 70
        total["hangs"] += "not decoded within" in line
        total["not_one_line"] += "\n" in line
        total["not_exit_2"] += outcome.error.exit_code != 2
    return total


def xml_figures(scratch: Path, number: int) -> dict[str, Any]:
    """Damaged and hostile ImageScope files beside a sound image."""
    total: Counter[str] = Counter()
    peak, slowest, lost = 0, 0.0, 0
    documents = [*xml_mutants(number, seed=2026), *hostile_xml().values()]
    for first in range(0, len(documents), BATCH):
        folder = scratch / "xml"
        test = folder / "src" / "MoNuSegTestData"
        test.mkdir(parents=True)
        write_image(folder / "image.tif", he_pixels(64, 0))
        for index, data in enumerate(documents[first : first + BATCH]):
            (test / f"m{index:05d}.xml").write_bytes(data)
            (test / f"m{index:05d}.tif").hardlink_to(folder / "image.tif")
        outcomes = list(outcomes_of(plan_monuseg(folder / "src", folder / "dest", PrepareSettings()).jobs))
        total.update(count(outcomes, XML_SECONDS))
        peak = max(peak, *(outcome.peak_bytes for outcome in outcomes))
        slowest = max(slowest, *(outcome.seconds for outcome in outcomes))
        lost += sum(_lost(outcome.record["counts"]) for outcome in outcomes if outcome.record is not None)
        shutil.rmtree(folder)
    measured = {"peak_MiB": round(peak / 2**20), "slowest_seconds": round(slowest, 2), "lost_regions": lost}
    return dict(total) | measured | {"over_memory": int(peak > XML_BYTES)}


def _lost(counts: dict[str, int]) -> int:
    """Regions that are neither painted nor counted as short or hidden."""
    return counts["regions"] - counts["instances"] - counts["short_regions"] - counts["unseen_regions"]


def ring_figures(number: int) -> dict[str, Any]:
    """Feared rings against whole-number arithmetic."""
    random = np.random.default_rng(2026)
    differing = 0
    for _ in range(number):
        ring = random_ring(random, 40)
        painted = np.zeros((40, 37), dtype=bool)
        row, column, covered = ring_pixels(ring, 40, 37)
        painted[row : row + covered.shape[0], column : column + covered.shape[1]] = covered
        differing += bool((painted != covered_exactly(ring, 40, 37)).any())
    return {"rings": number, "differing": differing}


def image_figures(scratch: Path, number: int) -> dict[str, Any]:
    """Damaged images, as image and as mask by turns, and bombs."""
    total: Counter[str] = Counter()
    mutants = list(image_mutants(number, seed=2026))
    for first in range(0, number, BATCH):
        folder = scratch / "images"
        write_image(folder / "image.png", he_pixels(32, 0))
        write_image(folder / "mask.png", np.ones((32, 32), dtype=np.uint8))
        files = []
        for index, (_, data) in enumerate(mutants[first : first + BATCH]):
            files.append(folder / f"m{index:05d}.tif")
            files[-1].write_bytes(data)
        jobs = [_image_job(folder, file, number % 2) for number, file in enumerate(files)]
        total.update(count(outcomes_of(jobs), LIMIT_SECONDS))
        shutil.rmtree(folder)
    return dict(total) | {"slowest_bomb_seconds": _slowest_bomb(scratch / "bombs")}


def _image_job(folder: Path, file: Path, as_mask: int) -> Job:
    from seunet.data.formats import FolderRules, classes_of
    from seunet.data.prepare import Found

    image, mask = (folder / "image.png", file) if as_mask else (file, folder / "mask.png")
    classes, _, _ = classes_of(FolderRules(kind="instances"))
    found = Found(file.stem, image, mask, "train", file.stem, 0.25, "user")
    return make_plan(
        "folder", "instances", classes, PrepareSettings(), [found], folder / "dest", decisions=[], faults=[]
    ).jobs[0]


def _slowest_bomb(folder: Path) -> float:
    """Seconds until the slowest bomb is refused, in a worker that is already running."""
    write_image(folder / "image.png", he_pixels(32, 0))
    write_image(folder / "mask.png", np.ones((32, 32), dtype=np.uint8))
    files = [folder / "image.png"]
    for index, size in enumerate([(20_000, 20_000), (2**31 - 1, 2**31 - 1), (2**31 - 1, 3)]):
        for kind, bomb in (("png", png_bomb), ("tif", tiff_bomb)):
            files.append(folder / f"bomb{index}.{kind}")
            files[-1].write_bytes(bomb(*size))
    outcomes = [outcome for outcome in run_jobs([_image_job(folder, file, 0) for file in files], workers=1)][1:]
    if not all(outcome.error is not None and outcome.error.exit_code == 2 for outcome in outcomes):
        sys.exit("a bomb was not refused with exit code 2")
    slowest = max(outcome.seconds for outcome in outcomes)
    if slowest > BOMB_SECONDS:
        sys.exit(f"a bomb took {slowest:.2f} s to refuse")
    return round(slowest, 3)


def verify_figures(scratch: Path, trials: int) -> dict[str, Any]:
    """Each fault alone, then random fives that do not undo one another; and clean sets."""
    source = write_monuseg(scratch / "verify-src", train=4, test=1)
    clean = scratch / "verify-set"
    prepare(plan_monuseg(source, clean, PrepareSettings(window_px=32, stride_px=16)), clean, workers=2)
    alarms, missed, planted = len(verify(clean)), 0, 0
    for seed in range(20):
        made = write_monuseg(scratch / f"clean-src{seed}", train=2, test=1, size_px=64 + seed)
        dest = scratch / f"clean{seed}"
        prepare(plan_monuseg(made, dest, PrepareSettings(window_px=32, stride_px=32)), dest, workers=2)
        alarms += len(verify(dest))
    random = np.random.default_rng(2026)
    groups = [[name] for name in FAULTS]
    groups += [sorted(random.choice(INDEPENDENT, 5, replace=False)) for _ in range(trials)]
    for number, names in enumerate(groups):
        folder = Path(shutil.copytree(clean, scratch / "planted" / str(number)))
        plant(folder, *names)
        lines = [str(finding) for finding in verify(folder)]
        planted += len(names)
        missed += sum(not any(FAULTS[name][1] in line for line in lines) for name in names)
        shutil.rmtree(folder)
    return {"clean_sets": 21, "alarms": alarms, "planted": planted, "missed": missed}


INDEPENDENT = [
    "missing instances",
    "unknown code",
    "impossible mpp",
    "patient in two splits",
    "picture in two splits",
    "window off the image",
    "window of no image",
    "class codes",
    "stray file",
    "unfinished",
]
"""Faults that can be planted together."""


def kill_figures(scratch: Path, kills: int) -> dict[str, Any]:
    """kill −9 at random moments, two to a run, then run to the end: the bytes of a run never broken."""
    source = write_monuseg(scratch / "kill-src", train=16, test=4, size_px=256)
    began = time.monotonic()
    finish(start(source, scratch / "whole"))
    needed = time.monotonic() - began
    expected = tree_bytes(scratch / "whole")
    random = np.random.default_rng(2026)
    runs = landed = midway = differing = 0
    while landed < kills:
        runs += 1
        for moment in random.uniform(0.2, 0.9, 2):
            code, _ = end_after(start(source, scratch / "broken"), needed * float(moment), signal.SIGKILL)
            landed += code == -signal.SIGKILL
            midway += any((scratch / "broken" / ".work").glob("*.json"))
        code, err = finish(start(source, scratch / "broken"))
        if code != 0 or tree_bytes(scratch / "broken") != expected:
            differing += 1
            print(f"differs: exit {code}, {err.strip()}, {sorted(tree_bytes(scratch / 'broken').keys() ^ expected)}")
        shutil.rmtree(scratch / "broken")
    return {
        "runs": runs,
        "kills_that_landed": landed,
        "with_some_images_finished": midway,
        "differing": differing,
    }


if __name__ == "__main__":
    main()
