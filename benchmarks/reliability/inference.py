"""The rows of RELIABILITY on inference, in full: `make reliability`.

Each section is a function (scratch folder, divisor of the counts) → figures, named in SECTIONS.  A figure that is not
what it must be ends the run with exit code 1 after everything was measured and written.

    python -m benchmarks.reliability.inference [DIVISOR] [SECTION …]

With sections named, only these are measured and nothing is written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.record import write_results
from benchmarks.reliability.images import bomb_figures, cut_figures, guard_figures, mutant_figures

SECTIONS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "mutants": mutant_figures,
    "cut_files": cut_figures,
    "bombs": bomb_figures,
    "guarded_reading": guard_figures,
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
}


def main() -> None:
    """Measure every section, or those that are named."""
    numbers = [text for text in sys.argv[1:] if text.isdecimal()]
    names = [text for text in sys.argv[1:] if not text.isdecimal()]
    divisor = int(numbers[0]) if numbers else 1
    figures = {}
    for name in names or SECTIONS:
        with tempfile.TemporaryDirectory() as scratch:
            figures[name] = SECTIONS[name](Path(scratch), divisor)
    print(json.dumps(figures, indent=1) if names else write_results("reliability_inference", figures))
    broken = [
        f"{row}.{key}" for row, values in figures.items() for key in values if key in MUST_BE_ZERO and values[key]
    ]
    if broken:
        sys.exit(f"not as it must be: {', '.join(broken)}")


if __name__ == "__main__":
    main()
