"""Where measured figures are kept: JSON with the command, the commit and the machine they came from."""

from __future__ import annotations

import io
import json
import os
import platform
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from benchmarks.declare import Benchmark, command_for
from seunet.storage import write_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
"""Everything raw: figures of benchmarks, logs and reports of published runs; pages are in docs/."""
MEASURED = RESULTS / "benchmarks"


def commit() -> str:
    """The commit that is measured, marked if the source differs from it."""
    changed = _git("status", "--porcelain", "--", "src", "support", "benchmarks/*.py")
    return _git("rev-parse", "HEAD") + ("+changes" if changed else "")


def write_results(benchmark: Benchmark, figures: dict[str, Any]) -> str:
    """Write what `benchmark` measured to the first file it declares; returns what was written."""
    machine = {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}
    report = {
        "command": shlex.join([*benchmark.program.split(), *sys.argv[1:]]),
        "commit": commit(),
        "machine": machine,
        **figures,
    }
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    write_text(ROOT / benchmark.writes[0], text)
    return text


def results(name: str) -> dict[str, Any]:
    """What was measured last, and as `again` the command, complete, that measures it today."""
    path = MEASURED / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found | {"again": command_for(path.relative_to(ROOT).as_posix())}


def source(report: dict[str, Any]) -> str:
    """The line below a table: how its figures are made today, and of which code they are."""
    return f"`{report['again']}` (measured at commit {short(report['commit'])}, {report['machine']['cores']} cores)."


def short(commit: str) -> str:
    """A commit as pages name it, with a word where more was changed than it says."""
    clean, _, changed = commit.partition("+")
    return f"`{clean[:12]}`" + (" and what was changed then" if changed else "")


def source_of(commit: str, folder: Path) -> Path:
    """`src` as it was at a commit, unpacked into `folder`: what PYTHONPATH needs to measure it."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
