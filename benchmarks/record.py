"""Where measured figures are kept: JSON with the command, the commit and the machine they came from."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from seunet.storage import write_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
"""Everything raw: figures of benchmarks, logs and reports of published runs; pages are in docs/."""
MEASURED = RESULTS / "benchmarks"


def commit() -> str:
    """The commit that is measured, marked if the source differs from it."""
    changed = _git("status", "--porcelain", "--", "src", "support", "tests", "benchmarks/*.py")
    return _git("rev-parse", "HEAD") + ("+changes" if changed else "")


def write_results(name: str, figures: dict[str, Any]) -> str:
    """Write results/benchmarks/NAME.json, made by `python -m benchmarks.NAME`; returns what was written."""
    machine = {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}
    report = {"command": f"python -m benchmarks.{name}", "commit": commit(), "machine": machine, **figures}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    write_text(MEASURED / f"{name}.json", text)
    return text


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
