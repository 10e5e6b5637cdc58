"""The tables of docs/install.md: the matrix of trials, and what comes with the package beside peers."""

from __future__ import annotations

from typing import Any

from benchmarks.record import RESULTS, results, source
from seunet.evaluation import markdown_table


def matrix() -> str:
    report = results("matrix")
    parts = [
        _table("image", report["objects"]),
        _table("runtime, against our own kernels", report["runtimes"]),
        _table("Python", report["pythons"]),
    ]
    return "\n\n".join([*parts, source(report)])


def _table(first: str, rows: dict[str, dict[str, str]]) -> str:
    columns = list(next(iter(rows.values())))
    named = ([name.replace("__array__", "`__array__`"), *row.values()] for name, row in rows.items())
    return markdown_table([first, *columns], named)


def footprint() -> str:
    report = results("footprint")
    rows = [_row(name, facts) for name, facts in report["packages"].items()]
    header = ["", "wheel, MB", "packages that come with it", "import, s of the processor", "and a network made"]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def _row(name: str, facts: dict[str, Any]) -> list[str]:
    size, packages = facts.get("wheel_mb", ""), facts.get("dependencies", "")
    if "reason" in facts:
        times = [f"not here: {facts['reason']}", ""]
    else:
        times = [f"{facts['import_seconds']:.2f}", f"{facts['network_seconds']:.2f}"]
    return [f"{name} {facts.get('version', '')}", str(size), str(packages), *times]


def _measured(name: str) -> bool:
    return (RESULTS / "benchmarks" / f"{name}.json").is_file()


BLOCKS = {"docs/install.md": {make.__name__: make for make in (footprint, matrix) if _measured(make.__name__)}}
