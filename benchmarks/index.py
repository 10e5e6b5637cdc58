"""benchmarks/README.md: which command makes which result, and where it is shown; from the code alone.

    python -m benchmarks.index            # write it
    python -m benchmarks.index --check    # exit 1 if it differs

Commands, data and minutes are what the modules declare (`BENCHMARK`).  Which block shows a result is not declared but
watched: the blocks are made, and the files below results/ that each one opens are its sources.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.declare import DATA, Benchmark, declarations
from benchmarks.docs.__main__ import BLOCKS
from benchmarks.record import RESULTS, ROOT
from seunet.evaluation import markdown_table
from seunet.storage import write_text

BENCHMARK = Benchmark("index", ("benchmarks/README.md",), 1)
PAGE = ROOT / "benchmarks" / "README.md"
FOLDERS = {
    "measure": "Prints figures and writes them to `results/`.",
    "docs": "Fills the blocks of pages between `<!-- name -->` and `<!-- /name -->` from what lies in `results/`.",
    "pictures": "Draws pictures that belong to no report.",
    "reliability": "What must not go wrong, tried thousands of times: `make reliability`.",
}
INTRO = """\
# Benchmarks

Made by `python -m benchmarks.index`. Commands run from the top of the repository. To regenerate one table, run the
command in its row, then `python -m benchmarks.docs`, which refills all blocks. The commit below a table is the code
that was measured; the command beside it is today's, and the results keep the one that was given. Minutes are rough,
on two cores. `results/trials` has logs of trainings that decisions speak of, copied by hand."""


def sources() -> dict[str, set[str]]:
    """The files below results/ that each block opens while it is made."""
    opened: list[str] = []

    def note(event: str, given: tuple[object, ...]) -> None:
        if event == "open" and isinstance(given[0], str):
            opened.append(given[0])

    sys.addaudithook(note)
    found: dict[str, set[str]] = {}
    for page, blocks in BLOCKS.items():
        for name, make in blocks.items():
            opened.clear()
            make()
            inside = {Path(path) for path in opened if Path(path).is_relative_to(RESULTS)}
            found[f"{_link(page)}: {name}"] = {path.relative_to(ROOT).as_posix() for path in inside}
    return found


def rows(folder: str, made: list[Benchmark], blocks: dict[str, set[str]], pages: dict[str, str]) -> Iterator[list[str]]:
    """Shown in ← result ← command ← data ← minutes."""
    for benchmark in made:
        if benchmark.module.split(".")[0] == folder:
            shown = [place for place, read in blocks.items() if any(map(benchmark.makes, read))]
            told = [page for page, text in pages.items() if any(_names(text, path) for path in benchmark.writes)]
            told = [_link(page) for page in told if not any(place.startswith(_link(page)) for place in shown)]
            results = "<br>".join(map(_link, benchmark.writes))
            needs = ", ".join(benchmark.needs)
            yield ["<br>".join(shown + told), results, f"`{benchmark.command}`", needs, f"{benchmark.minutes:g}"]


def index() -> str:
    """The page."""
    made = [module.BENCHMARK for module in declarations().values()]
    blocks = sources()
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    header = ["shown in", "result", "command", "needs", "minutes"]
    parts = [INTRO]
    for folder, text in FOLDERS.items():
        parts += [f"## {folder}", text, markdown_table(header, rows(folder, made, blocks, pages))]
    parts += ["## What they need", markdown_table(["data", "how to come by it"], DATA.items())]
    return "\n\n".join(parts) + "\n"


def _link(path: str) -> str:
    """Some results are not kept in the repository."""
    return f"[{path}](../{path})" if (ROOT / path).exists() else path


def _names(text: str, path: str) -> bool:
    """Whether a page shows a picture or names a result by hand."""
    inside = path.removeprefix("docs/")
    return re.search(rf"{re.escape(inside)}\b", text) is not None


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--check", action="store_true", help="exit 1 if the page differs")
    return made


def main() -> int:
    check: bool = parser().parse_args().check
    new = index()
    if check:
        return 0 if PAGE.is_file() and PAGE.read_text() == new else 1
    write_text(PAGE, new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
