"""What the benchmarks of reliability share: counts that can be divided, and figures that must be 0."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from benchmarks.declare import Benchmark
from benchmarks.record import write_results


def parser_with_divisor(benchmark: Benchmark, description: str | None) -> argparse.ArgumentParser:
    made = benchmark.parser(description)
    made.add_argument("--divisor", type=int, default=1, help="of the counts, for a trial")
    return made


def measure_rows(
    benchmark: Benchmark,
    parser: argparse.ArgumentParser,
    rows: Callable[[Path, int], dict[str, Any]],
    must_be_zero: Collection[str],
) -> None:
    """Measure all rows in a scratch folder, their counts divided as asked for; keep them, and exit if one is not 0."""
    divisor: int = parser.parse_args().divisor
    with tempfile.TemporaryDirectory() as name:
        figures = rows(Path(name), divisor)
    print(write_results(benchmark, figures))
    exit_unless_zero(figures, must_be_zero)


def exit_unless_zero(figures: Mapping[str, Mapping[str, Any]], must_be_zero: Collection[str]) -> None:
    """Exit code 1 and the names of the figures that are not 0 though they must be."""
    rows = figures.items()
    broken = [f"{row}.{key}" for row, values in rows for key in values if key in must_be_zero and values[key]]
    if broken:
        sys.exit(f"not as it must be: {', '.join(broken)}")
