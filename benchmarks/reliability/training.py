"""The rows of RELIABILITY on training, in full: `make reliability` (about five minutes on two cores).

A figure that is not what it must be ends the run with exit code 1 after everything was measured and written.
"""

from __future__ import annotations

import argparse
import errno
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.declare import Benchmark
from benchmarks.reliability.zeros import measure_rows, parser_with_divisor
from seunet.errors import ModelFileError, StorageError
from seunet.training import TrainingConfig, read_checkpoint, write_checkpoint
from support.checkpoints import checkpoint_of, killed_writer, step_of
from support.training import (
    SAVE_CALLS,
    cut_run,
    failing_call,
    learnt,
    prepared_nuclei,
    tiny_config,
    train_alone,
)

BENCHMARK = Benchmark(
    "reliability.training",
    ("results/benchmarks/reliability_training.json",),
    5,
)

MUST = {"differing", "unreadable", "lost_too_many", "silent", "spoilt", "undetected"}
"""Figures that must be 0."""

REAL_WIDTHS = (30, 60, 120, 240, 480)
"""Of configs/monuseg-cpu.yaml."""


def parser() -> argparse.ArgumentParser:
    return parser_with_divisor(BENCHMARK, __doc__)


def main() -> None:
    """Measure every row; the counts can be divided for a trial."""
    measure_rows(BENCHMARK, parser(), rows, MUST)


def rows(scratch: Path, divisor: int) -> dict[str, Any]:
    return {
        "resume": resume_figures(scratch / "resume", 50 // divisor),
        "kill": kill_figures(scratch / "kill", 200 // divisor),
        "faults": fault_figures(scratch / "faults"),
        "damage": damage_figures(scratch / "damage", 2000 // divisor),
    }


def resume_figures(scratch: Path, cuts: int) -> dict[str, Any]:
    """Stopped after random steps, one to three times a run, resumed with 0–2 workers: the bytes of one never cut."""
    torch.set_num_threads(1)
    data = prepared_nuclei(scratch)

    def config(workers: int) -> TrainingConfig:
        return tiny_config(data, machine__workers=workers)

    steps = train_alone(config(0), scratch / "whole").step
    per_epoch = steps // config(0).recipe.epochs
    expected = learnt(scratch / "whole")
    random = np.random.default_rng(2026)
    runs = done = midway = differing = 0
    while done < cuts:
        chosen = np.sort(
            random.choice(np.arange(1, steps), min(int(random.integers(1, 4)), cuts - done), replace=False)
        )
        folder = scratch / f"cut{runs}"
        cut_run(config, folder, chosen.tolist(), random.permutation(3).tolist())
        differing += learnt(folder) != expected
        runs, done, midway = runs + 1, done + len(chosen), midway + int((chosen % per_epoch != 0).sum())
    return {"runs": runs, "cut_points": done, "in_mid_epoch": midway, "workers": [0, 1, 2], "differing": differing}


def kill_figures(scratch: Path, kills: int) -> dict[str, Any]:
    """kill −9 while checkpoints are written, at random moments and while a file is half written, by turns."""
    scratch.mkdir()
    path, random = scratch / "last.safetensors", np.random.default_rng(2026)
    began = time.monotonic()
    write_checkpoint(path, checkpoint_of(0, REAL_WIDTHS))
    needed = time.monotonic() - began
    landed = unreadable = lost_too_many = most_lost = 0
    for number in range(kills):
        wait = float(random.uniform(0, 3 * needed))
        written = killed_writer(path, REAL_WIDTHS, wait, while_writing=bool(number % 2))
        parts = list(scratch.glob(".*.part"))
        landed += bool(parts)
        for part in parts:
            part.unlink()
        try:
            step = step_of(read_checkpoint(path))
        except ModelFileError:
            unreadable += 1
            continue
        lost_too_many += not written <= step <= written + 1
        most_lost = max(most_lost, written - step)
    return {
        "kills": kills,
        "checkpoint_MB": round(path.stat().st_size / 1e6, 2),
        "landed_on_a_half_written_file": landed,
        "unreadable": unreadable,
        "most_finished_checkpoints_lost": most_lost,
        "lost_too_many": lost_too_many,
    }


def fault_figures(scratch: Path) -> dict[str, Any]:
    """Each system call of a save fails, as on a full and on a read-only disk: a whole file stays, and it is said."""
    path = scratch / "last.safetensors"
    faults = silent = spoilt = 0
    for call in SAVE_CALLS:
        for code in (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT):
            write_checkpoint(path, checkpoint_of(1, REAL_WIDTHS))
            before, faults = path.read_bytes(), faults + 1
            try:
                with failing_call(call, code):
                    write_checkpoint(path, checkpoint_of(2, REAL_WIDTHS))
                silent += 1
            except StorageError as error:
                silent += error.exit_code != 3
            # The folder is synced after the new file took its place.
            kept = step_of(read_checkpoint(path)) == 2 if call == "fsync folder" else None
            spoilt += (kept is not True) if kept is not None else path.read_bytes() != before
            spoilt += len(list(scratch.iterdir())) != 1
    return {"calls": list(SAVE_CALLS), "faults": faults, "silent": silent, "spoilt": spoilt}


def damage_figures(scratch: Path, files: int) -> dict[str, Any]:
    """A flipped bit or a missing tail anywhere in a checkpoint of a run."""
    data = prepared_nuclei(scratch)
    train_alone(tiny_config(data), scratch / "run", 2)
    whole, path = (scratch / "run" / "last.safetensors").read_bytes(), scratch / "c"
    random = np.random.default_rng(2026)
    undetected = 0
    for number in range(files):
        place = int(random.integers(0, len(whole)))
        altered = bytearray(whole[:place] if number % 2 else whole)
        if not number % 2:
            altered[place] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(bytes(altered))
        try:
            read_checkpoint(path)
            undetected += 1
        except ModelFileError:
            pass
    return {"files": files, "undetected": undetected}


if __name__ == "__main__":
    main()
