"""Run `seunet data prepare` in a process of its own and end it at a moment of choice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path


def start(source: Path, dest: Path) -> subprocess.Popen[str]:
    """`seunet data prepare monuseg SRC DEST` with two workers."""
    arguments = ["data", "prepare", "monuseg", str(source), str(dest), "--workers", "2", "--no-progress"]
    return subprocess.Popen(
        [sys.executable, "-m", "seunet.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and errors."""
    _, err = process.communicate(timeout=600)
    return process.returncode, err


def end_after(process: subprocess.Popen[str], seconds: float, how: signal.Signals) -> tuple[int, str]:
    """Let it run for `seconds`, then send the signal; it may have finished by then."""
    time.sleep(seconds)
    process.send_signal(how)
    return finish(process)
