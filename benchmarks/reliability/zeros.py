"""What the benchmarks of reliability share: counts that can be divided, and figures that must be 0."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping
from typing import Any

from benchmarks.declare import Benchmark


def parser_with_divisor(benchmark: Benchmark, description: str | None) -> argparse.ArgumentParser:
    made = benchmark.parser(description)
    made.add_argument("--divisor", type=int, default=1, help="of the counts, for a trial")
    return made


def exit_unless_zero(figures: Mapping[str, Mapping[str, Any]], must_be_zero: Collection[str]) -> None:
    """Exit code 1 and the names of the figures that are not 0 though they must be."""
    rows = figures.items()
    broken = [f"{row}.{key}" for row, values in rows for key in values if key in must_be_zero and values[key]]
    if broken:
        sys.exit(f"not as it must be: {', '.join(broken)}")
