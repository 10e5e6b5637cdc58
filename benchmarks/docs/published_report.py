"""The reproduction that docs/results/monuseg-cpu.md shows: reports, logs and figures, kept in results/monuseg-cpu.

python -m benchmarks.docs.published_report REPORT   # copy what `seunet reproduce` left, draw, fill the page
python -m benchmarks.docs.published_report          # draw again from what is there
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from benchmarks.declare import Benchmark
from benchmarks.measure.model.training_runs import keep
from benchmarks.record import RESULTS, ROOT
from seunet.evaluation import Block, Heading, as_markdown, write_pictures
from seunet.evaluation.reproduce import jobs, page, read_measured, read_protocol
from seunet.storage import atomic_path

BENCHMARK = Benchmark(
    "docs.published_report",
    ("results/monuseg-cpu", "docs/results/monuseg-cpu/figures"),
    1,
    arguments="reports/monuseg-cpu",
    needs=("reports/monuseg-cpu",),
)

PROTOCOL = RESULTS / "monuseg-cpu" / "protocol.yaml"
KEPT = RESULTS / "monuseg-cpu"
PAGE = "docs/results/monuseg-cpu.md"


def copy(report: Path) -> None:
    """Everything the page is made of, and nothing else: no weights."""
    for job in jobs(read_protocol(PROTOCOL)):
        keep(report / "runs" / job.folder_name, KEPT / "runs" / job.folder_name)
        for kind in ("evaluation", "equivariance"):
            source = report / "measured" / job.folder_name / f"{kind}.json"
            if source.is_file():
                with atomic_path(KEPT / "measured" / job.folder_name / source.name) as part:
                    shutil.copyfile(source, part)


def blocks() -> list[Block]:
    """The page without its title, which stands above what is said about it."""
    protocol = read_protocol(PROTOCOL)
    made = page(protocol, read_measured(protocol, KEPT), ROOT / "docs" / "results" / "monuseg-cpu" / "figures")
    return [block for block in made if not (isinstance(block, Heading) and block.level == 1)]


def report_text() -> str:
    return as_markdown(blocks(), (ROOT / PAGE).parent).rstrip("\n")


BLOCKS = {PAGE: {"report": report_text}} if KEPT.is_dir() else {}


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("reports", nargs="*", type=Path, metavar="REPORT", help="to copy; default: draw again")
    return made


def main() -> None:
    for report in parser().parse_args().reports:
        copy(report)
    write_pictures(blocks())


if __name__ == "__main__":
    main()
