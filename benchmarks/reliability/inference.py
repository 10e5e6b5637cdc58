"""The rows of RELIABILITY on inference, in full: `make reliability`.

Each section is a function (scratch folder, divisor of the counts) → figures, named in SECTIONS.  A figure that is not
what it must be ends the run with exit code 1 after everything was measured and written.

    python -m benchmarks.reliability.inference [--divisor N] [SECTION …]

With sections named, only these are measured and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.declare import REAL, Benchmark
from benchmarks.record import write_results
from benchmarks.reliability.images import bomb_figures, cut_figures, guard_figures, mutant_figures
from benchmarks.reliability.outlines import outline_figures
from benchmarks.reliability.zeros import exit_unless_zero, parser_with_divisor

BENCHMARK = Benchmark(
    "reliability.inference",
    ("results/benchmarks/reliability_inference.json",),
    10,
    needs=(REAL,),
)

SECTIONS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "mutants": mutant_figures,
    "cut_files": cut_figures,
    "bombs": bomb_figures,
    "guarded_reading": guard_figures,
    "outlines": outline_figures,
}

MUST_BE_ZERO = {
    "tracebacks",
    "hangs",
    "not_one_line",
    "not_exit_2",
    "over_memory",
    "false_pixels",
    "not_refused",
    "over_1_second",
    "over_20_percent",
    "invalid",
    "other_area",
    "below_0.999",
}


def parser() -> argparse.ArgumentParser:
    made = parser_with_divisor(BENCHMARK, __doc__)
    made.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    return made


def main() -> None:
    """Measure every section, or those that are named."""
    asked = parser().parse_args()
    divisor, names = asked.divisor, asked.sections
    figures = {}
    for name in names or SECTIONS:
        with tempfile.TemporaryDirectory() as scratch:
            figures[name] = SECTIONS[name](Path(scratch), divisor)
    print(json.dumps(figures, indent=1) if names else write_results(BENCHMARK, figures))
    exit_unless_zero(figures, MUST_BE_ZERO)


if __name__ == "__main__":
    main()
