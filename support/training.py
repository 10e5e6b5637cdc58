"""Tiny training runs: a set to learn, a config, runs that end at a step of choice, runs in processes of their own."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import yaml

from seunet.data import Window, WindowDataset
from seunet.training import Observer, Processes, TrainingConfig, TrainingOutcome, checked_config, train
from support.cli import seunet
from support.datasets import write_csv, write_nuclei

ALONE = Processes(0, 1, torch.device("cpu"))

LEARNT = ("last.safetensors", "best.safetensors", "log.jsonl")
"""What a run learns; the rest of its folder depends on the clock."""


def prepared_nuclei(root: Path, images: int = 6, size_px: int = 64, window_px: int = 32) -> Path:
    """A prepared set of violet discs."""
    source = write_nuclei(root / "src", images, size_px)
    codes = write_csv(root / "classes.csv", [("code", "class"), (0, "other"), (1, "nucleus"), (9, "ignore")])
    options = ("--class-map", codes, "--window", window_px, "--stride", window_px, "--mpp", 0.25, "--workers", 1)
    ran = seunet("data", "prepare", "folder", source, root / "set", *options, "--no-progress")
    if ran.code != 0:
        raise RuntimeError(ran.err)
    return root / "set"


def tiny_tree(data: Path, **changes: Any) -> dict[str, Any]:
    """A run of a second: 3 epochs of 4 steps.  `changes` are dotted names with __ for the dot."""
    tree: dict[str, Any] = {
        "model": {"name": "seunet", "widths": [5, 10]},
        "data": {"root": str(data), "hold_out_every": 3, "augmentation": {"crop_px": 24}},
        "recipe": {"epochs": 3, "batch": 4},
        "validation": {"batch": 8},
        "machine": {"device": "cpu", "threads": 1, "tensorboard": False, "checkpoint_seconds": 1e9},
    }
    for name, value in changes.items():
        *parents, last = name.split("__")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return tree


def tiny_config(data: Path, **changes: Any) -> TrainingConfig:
    return checked_config(tiny_tree(data, **changes), "the test")


def tiny_file(path: Path, data: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(tiny_tree(data, **changes)))
    return path


def stop_after(steps: int) -> Callable[[], bool]:
    """Wants to stop at its `steps`-th question: after so many steps."""
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked >= steps

    return wanted


def train_alone(config: TrainingConfig, folder: Path, steps: int | None = None, **options: Any) -> TrainingOutcome:
    """`train` in this process, to the end or for so many steps."""
    wanted = (lambda: False) if steps is None else stop_after(steps)
    return train(config, folder, ALONE, stop_wanted=wanted, **options)


def cut_run(config: Callable[[int], TrainingConfig], folder: Path, cuts: Sequence[int], workers: Sequence[int]) -> None:
    """Run `config(workers)` to the end, stopped after each of the steps `cuts` on the way."""
    done = 0
    for number, cut in enumerate(cuts):
        train_alone(config(workers[number % len(workers)]), folder, cut - done, resume=number > 0)
        done = cut
    outcome = train_alone(config(workers[len(cuts) % len(workers)]), folder, resume=bool(cuts))
    if not outcome.finished:
        raise RuntimeError(f"stopped at {outcome.step} of {outcome.total_steps}")


def learnt(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in LEARNT}


class Killed(BaseException):
    """What stands for kill −9 inside a process: nothing is written any more."""


class KillAt(Observer):
    """An observer that ends the run at a step, as abruptly as can be in one process."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step(self, report: Any) -> None:
        if report.step == self._step:
            raise Killed

    def on_validation(self, report: Any, model: Any, sources: Any) -> None:
        pass


def environment(**more: str) -> dict[str, str]:
    """This process's, with one thread for each library and this package's source first."""
    threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def start_training(config: Path, folder: Path, *options: str, processes: int = 1) -> subprocess.Popen[str]:
    """`seunet train` in a process of its own, or in several by torchrun."""
    launcher = [sys.executable]
    if processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    arguments = ["-m", "seunet", "train", str(config), "-o", str(folder), "--no-progress", *options]
    return subprocess.Popen(
        [*launcher, *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], timeout_seconds: float = 600) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    out, err = process.communicate(timeout=timeout_seconds)
    return process.returncode, out, err


def wait_for_rows(folder: Path, rows: int, process: subprocess.Popen[str], timeout_seconds: float = 300) -> None:
    """Until the log has so many rows, or the process has ended."""
    log, until = folder / "log.jsonl", time.monotonic() + timeout_seconds
    while process.poll() is None and time.monotonic() < until:
        if log.is_file() and log.read_bytes().count(b"\n") >= rows:
            return
        time.sleep(0.005)
    raise RuntimeError(f"no {rows} rows in {log}: exit {process.poll()}, {ended(process)[2]}")


def signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """As a terminal or a scheduler does: to the process and all below it."""
    os.killpg(process.pid, number)


@contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    """A disk with no room: the system refuses to let any file of this process grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


SAVE_CALLS = ("mkstemp", "open", "write", "fsync", "chmod", "replace", "fsync folder")
"""The system calls of a save, in their order."""


@contextmanager
def failing_call(name: str, code: int = errno.ENOSPC) -> Iterator[None]:
    """Inside the block, the first call of that kind fails as on a full or read-only disk."""
    nth = {"open": 2, "fsync folder": 2}.get(name, 1)  # making the temporary file opens it as well
    place: Any
    attribute: str
    place, attribute = {
        "mkstemp": (tempfile, "mkstemp"),
        "open": (os, "open"),
        "write": (Path, "write_bytes"),
        "fsync": (os, "fsync"),
        "fsync folder": (os, "fsync"),
        "chmod": (Path, "chmod"),
        "replace": (os, "replace"),
    }[name]
    real, calls = getattr(place, attribute), 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    setattr(place, attribute, counted)
    try:
        yield
    finally:
        setattr(place, attribute, real)


@contextmanager
def poisoned(epoch: int, window: int) -> Iterator[None]:
    """Inside the block, one window of one epoch is made of NaN."""
    real = WindowDataset.__getitem__

    def poisonous(self: WindowDataset, key: int | tuple[int, ...]) -> Window:
        found = real(self, key)
        return found._replace(image=found.image * float("nan")) if key == (epoch, window) else found

    WindowDataset.__getitem__ = poisonous  # type: ignore[method-assign]
    try:
        yield
    finally:
        WindowDataset.__getitem__ = real  # type: ignore[method-assign]
