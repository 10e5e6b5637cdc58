"""What an OUT holds: its results, at any depth, and summary.csv of all of them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from seunet.errors import InputError
from seunet.limits import MAX_TABLE_BYTES
from seunet.results.counts import write_summary
from seunet.storage.files import read_limited
from seunet.storage.output_folder import held

RUN_NAME: Final = "run.json"
WORK_NAME: Final = ".work"
SUMMARY_NAME: Final = "summary.csv"
FORMATS: Final = "seunet-run/"
MAX_RUN_BYTES: Final = 1 << 28
UNREADABLE: Final = "cannot be read; pass --overwrite to make the result again"


def summarise(out: Path, done: Collection[str], failed: Mapping[str, str], faults: Sequence[str]) -> None:
    """Write summary.csv: a row for everything that OUT holds, whoever made it, and for what could not be done.

    `done` are the names that this call has done, `failed` those it has not, with the reason; `faults` are inputs that
    got no name.  A failure of an earlier call stays until its input is done.
    """
    with held(out, wait=True):
        path = out / SUMMARY_NAME
        rows = {name: row for name in result_names(out) if (row := _row(out / name)) is not None}
        before = {name: line for name, line in _failures(path).items() if name not in done and name not in rows}
        for name, line in {**before, **failed}.items():
            rows[name] = {"status": "failed", **rows.get(name, {}), "error": line}
        named = [{**row, "name": name} for name, row in rows.items()]
        write_summary(path, [*named, *({"name": "", "status": "failed", "error": line} for line in faults)])


def read_document(path: Path) -> dict[str, Any] | None:
    """The content of a run.json; None if there is none to be read."""
    try:
        document = json.loads(read_limited(path, MAX_RUN_BYTES))
    except (InputError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def result_names(out: Path) -> Iterator[str]:
    """Results in OUT, whole or begun, at any depth."""
    for place, folders, files in os.walk(out):
        if (RUN_NAME in files or WORK_NAME in folders) and Path(place) != out:
            yield Path(place).relative_to(out).as_posix()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not name.endswith(".zarr"))


def _row(folder: Path) -> dict[str, str] | None:
    """The row of a result; None of what is no result of ours."""
    if not (folder / RUN_NAME).is_file():
        return {"status": "unfinished"}
    document = read_document(folder / RUN_NAME)
    if document is None:
        return {"status": "failed", "error": f"{RUN_NAME} {UNREADABLE}"}
    summary = document.get("summary")
    if not str(document.get("format")).startswith(FORMATS) or not isinstance(summary, dict):
        return None
    part = document.get("results", {}).get("not_analysed")
    return {"status": "part" if part else "done", **{str(name): str(value) for name, value in summary.items()}}


def _failures(path: Path) -> dict[str, str]:
    """Names and reasons of what failed before; nothing where the table is another's or cannot be read."""
    try:
        text = read_limited(path, MAX_TABLE_BYTES).decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (InputError, UnicodeDecodeError, csv.Error):
        return {}
    return {row["name"]: row.get("error") or "" for row in rows if row.get("status") == "failed" and row.get("name")}
