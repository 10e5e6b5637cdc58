"""kill −9 at 100 random moments of a slide, resumed each time: the bytes of a run that was never broken.

    python -m benchmarks.reliability.slide_kills                 # 100 kills
    python -m benchmarks.reliability.slide_kills --divisor 10    # 10 kills

The slide is the shipped one, in tiles of 128 px.  A moment is drawn evenly from those between the first tile and the
end of a whole run.  Two kills per run, the second in the run that goes on after the first; then it is run to its end.
One thread.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT
from benchmarks.reliability.cluster import contents
from benchmarks.reliability.zeros import measure_rows, parser_with_divisor

BENCHMARK = Benchmark("reliability.slide_kills", ("results/benchmarks/slide_kills.json",), 15)
SLIDE = ROOT / "src" / "seunet" / "samples" / "OS-1-detail.ome.tif"
RESULT = SLIDE.name.split(".")[0]
KILLS, KILLS_PER_RUN = 100, 2


def started(out: Path) -> subprocess.Popen[str]:
    options = ["--tile-size", "128", "--threads", "1", "--no-progress"]
    command = [sys.executable, "-m", "seunet", "segment", str(SLIDE), "-o", str(out), *options]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finished(process: subprocess.Popen[str]) -> int:
    _, said = process.communicate()
    if process.returncode > 0:
        print(said.strip())
    return process.returncode


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """What it has used: on a busy machine a moment is told by this and not by the clock."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stage(result: Path) -> str:
    """How far a killed run had come."""
    if (result / "run.json").is_file():
        return "with everything written"
    if any(result.glob(".*.part")):
        return "while results were written"
    ledger = result / ".work" / "ledger.jsonl"
    return "between tiles" if ledger.is_file() and ledger.read_bytes().count(b"\n") > 1 else "before the first tile"


def whole_run(out: Path) -> tuple[float, float]:
    """Processor seconds at the first tile and at the end."""
    process, first, used = started(out), None, 0.0
    while process.poll() is None:
        time.sleep(0.02)
        used = max(used, now) if (now := cpu_seconds(process)) != float("inf") else used
        if first is None and stage(out / RESULT) != "before the first tile":
            first = used
    if finished(process) or first is None:
        sys.exit(f"{SLIDE}: was not segmented")
    return first, used


def killed_at(seconds: float, process: subprocess.Popen[str]) -> bool:
    """Whether it was still there."""
    while process.poll() is None and cpu_seconds(process) < seconds:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    return finished(process) == -signal.SIGKILL


def rows(scratch: Path, divisor: int) -> dict[str, Any]:
    whole_run(scratch / "compiled")
    first, end = whole_run(scratch / "whole")
    expected, draw = contents(scratch / "whole"), random.Random(2026)
    stages: Counter[str] = Counter()
    runs = failed = other_bytes = 0
    while stages.total() < KILLS // divisor:
        broken, runs = scratch / "broken", runs + 1
        for _ in range(KILLS_PER_RUN):
            if killed_at(draw.uniform(first, end), started(broken)):
                stages[stage(broken / RESULT)] += 1
        failed += finished(started(broken)) != 0
        other_bytes += contents(broken) != expected
        shutil.rmtree(broken)
        print(f"{stages.total()} kills, {other_bytes} of {runs} with other bytes", flush=True)
    counts = {"kills": stages.total(), "runs": runs, "failed": failed, "other_bytes": other_bytes}
    return {"kill": {"slide": SLIDE.name, **counts, "moments": dict(stages)}}


def parser() -> argparse.ArgumentParser:
    return parser_with_divisor(BENCHMARK, __doc__)


if __name__ == "__main__":
    measure_rows(BENCHMARK, parser(), rows, {"failed", "other_bytes"})
