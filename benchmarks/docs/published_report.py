"""The reproductions that docs/results/ shows: reports, logs and figures, kept in results/NAME.

python -m benchmarks.docs.published_report reports/NAME   # copy what `seunet reproduce` left, draw, fill the page
python -m benchmarks.docs.published_report                # draw again from what is there

What is kept has no weights and no data, and `seunet reproduce PROTOCOL -o results/NAME` goes on from it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.declare import Benchmark
from benchmarks.measure.model.training_runs import keep
from benchmarks.record import RESULTS, ROOT, results, source
from seunet.errors import unknown_name
from seunet.evaluation import Block, Heading, as_markdown, markdown_table, write_pictures
from seunet.evaluation.reproduce import grouped, jobs, page, read_measured, read_protocol, statistics_of
from seunet.storage import atomic_path, write_text

BENCHMARK = Benchmark(
    "docs.published_report",
    (
        "results/monuseg-cpu",
        "docs/results/monuseg-cpu/figures",
        "results/monuseg-cpu-192px",
        "docs/results/monuseg-cpu-192px/figures",
        "results/bcss-patches",
        "docs/results/bcss-patches/figures",
        "results/monuseg-width",
        "docs/results/monuseg-width/figures",
    ),
    1,
    arguments="reports/monuseg-cpu",
    needs=("reports/monuseg-cpu",),
)

PROTOCOLS = {
    "monuseg-cpu": ROOT / "configs" / "reproduce-monuseg-cpu.yaml",
    "monuseg-cpu-192px": RESULTS / "monuseg-cpu-192px" / "protocol.yaml",
    "bcss-patches": ROOT / "configs" / "reproduce-bcss-patches.yaml",
    "monuseg-width": ROOT / "configs" / "reproduce-monuseg-width.yaml",
}
"""By the name of the report."""
KEPT_FILES = ("evaluation.json", "equivariance.json", "windows-*px/evaluation.json", "panels/*.png")


def page_of(name: str) -> str:
    return f"docs/results/{name}.md"


def copy(report: Path) -> None:
    """Everything the page is made of, and nothing else: no weights."""
    if report.name not in PROTOCOLS:
        raise unknown_name("report", report.name, PROTOCOLS)
    protocol, kept = read_protocol(PROTOCOLS[report.name]), RESULTS / report.name
    there = {one.job.folder_name for one in read_measured(protocol, report)}
    for folder in (job.folder_name for job in jobs(protocol) if job.folder_name in there):
        keep(report / "runs" / folder, kept / "runs" / folder)
        measured = report / "measured" / folder
        for file in (path for pattern in KEPT_FILES for path in measured.glob(pattern)):
            with atomic_path(kept / "measured" / folder / file.relative_to(measured)) as part:
                shutil.copyfile(file, part)
    shutil.copyfile(PROTOCOLS[report.name], kept / "protocol.yaml")
    numbers = statistics_of(protocol, grouped(read_measured(protocol, kept)))
    write_text(kept / "statistics.json", json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")


def blocks(name: str) -> list[Block]:
    """The page without its title, which stands above what is said about it."""
    protocol, statistics = read_protocol(PROTOCOLS[name]), RESULTS / name / "statistics.json"
    numbers = json.loads(statistics.read_text()) if statistics.is_file() else None
    figures = ROOT / "docs" / "results" / name / "figures"
    made = page(protocol, read_measured(protocol, RESULTS / name), figures, numbers)
    return [block for block in made if not (isinstance(block, Heading) and block.level == 1)]


def report_text(name: str) -> str:
    return as_markdown(blocks(name), (ROOT / page_of(name)).parent).rstrip("\n")


def bcss_hours() -> str:
    """What the whole of BCSS would take."""
    report = results("bcss_hours")
    rows = [
        (title, f"{hours['training_core_hours']:,}", f"{hours['evaluation_core_hours']:,}")
        for title, hours in report["hours"].items()
    ]
    windows = f"{report['training_windows']:,} windows, {report['epochs']} epochs"
    judged = f"{report['test_windows']:,} windows, {report['test_scales']} scales"
    header = ["one seed, core-hours", f"training ({windows})", f"evaluation, blind ({judged})"]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def surroundings() -> str:
    """What surrounds the image, and how much windows of other sizes then matter."""
    report = results("surroundings")
    ious = report["iou_percent"]
    sides = list(next(iter(ious.values())))
    rows = [
        (name, *(f"{found[side]:.2f}" for side in sides), f"{max(found.values()) - min(found.values()):.2f}")
        for name, found in ious.items()
    ]
    header = ["IoU, % in windows of", *(f"{side} px" for side in sides), "range"]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


KEPT = [name for name in PROTOCOLS if (RESULTS / name / "measured").is_dir()]
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    page_of(name): {"report": partial(report_text, name)} for name in KEPT
}
BLOCKS.setdefault(page_of("bcss-patches"), {})["hours"] = bcss_hours
BLOCKS.setdefault(page_of("monuseg-cpu"), {})["surroundings"] = surroundings


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("reports", nargs="*", type=Path, metavar="REPORT", help="to copy; default: draw again")
    return made


def main() -> None:
    asked = parser().parse_args().reports
    for report in asked:
        copy(report)
    for name in [report.name for report in asked] or KEPT:
        data = read_protocol(PROTOCOLS[name]).data
        if not data.is_dir():
            print(f"{name}: the systems side by side stay as they were drawn: {data} is not here")
        write_pictures(blocks(name))


if __name__ == "__main__":
    main()
