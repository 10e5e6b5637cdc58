"""Markdown tables of committed results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.record import MEASURED


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MEASURED / f"{name}.json").read_text())
    return found


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "---|" * lines[0].count(" | ") + "---|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def source(report: dict[str, Any]) -> str:
    return f"`{report['command']}` at commit `{report['commit'][:12]}`, {report['machine']['cores']} cores."
