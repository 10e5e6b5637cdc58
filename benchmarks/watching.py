"""A command run as a user runs it, and what it took: time, and the memory of it and all its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.record import ROOT

LOOK_SECONDS = 0.05


class Ran(NamedTuple):
    """A command that has ended, or was ended."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mib: int
    """The largest sum over the process and its children of what each holds; what they share counts for both."""


def run_seunet(*arguments: object, kill_when: Callable[[], bool] | None = None, threads: int | None = None) -> Ran:
    """Run `seunet ARGUMENTS`, looked at twenty times a second; SIGKILL as soon as `kill_when` says so."""
    command = [sys.executable, "-m", "seunet", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=ROOT)
        peak = 0
        while process.poll() is None:
            peak = max(peak, tree_kib(process.pid))
            if kill_when is not None and kill_when():
                process.send_signal(signal.SIGKILL)
            time.sleep(LOOK_SECONDS)
        seconds = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        return Ran(process.returncode, out.read(), err.read(), round(seconds, 1), peak >> 10)


def tree_kib(pid: int) -> int:
    """Resident memory of a process and all its descendants."""
    try:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        own = next((int(line.split()[1]) for line in status if line.startswith("VmRSS:")), 0)
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # ended meanwhile
        return 0
    return own + sum(tree_kib(child) for child in children)
