"""What an OUT holds already: whether a result is the one that is asked for, and summary.csv of all that lies there."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from seunet.errors import InputError
from seunet.limits import MAX_TABLE_BYTES
from seunet.results.counts import write_summary
from seunet.segmentation.options import AUTO, scale_name
from seunet.storage.files import read_limited
from seunet.storage.output_folder import first_difference, held

RUN_NAME: Final = "run.json"
WORK_NAME: Final = ".work"
SUMMARY_NAME: Final = "summary.csv"
FORMATS: Final = "seunet-run/"
MAX_RUN_BYTES: Final = 1 << 28

UNREADABLE: Final = "cannot be read; pass --overwrite to make the result again"
OLDER_NOTE: Final = (
    "was made by an earlier edition: objects from 10 px of the network's grid on are listed, and labels.tif is on that "
    "grid; --overwrite makes it anew"
)
FLAGS: Final = {
    "tissue": ("--no-tissue", "--tissue"),
    "split": ("--no-split", "--split"),
    "smooth": ("no --smooth", "--smooth"),
    "probabilities": ("no --probabilities", "--probabilities"),
    "zipped": ("no --gzip", "--gzip"),
    "instances": ("no --instances", "--instances"),
}
"""Options that are on or off, as a user gives them."""


class Earlier(NamedTuple):
    """A result that is there already: its run.json, and what the user should know of it."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def finished(folder: Path, identity: dict[str, Any]) -> Earlier | None:
    """This very result, or None; an InputError if the folder holds another result."""
    path = folder / RUN_NAME
    if not path.is_file():
        return None
    document = _document(path)
    if document is None:
        raise InputError(f"{path}: {UNREADABLE}")
    notes = _with_todays_choices(document)
    if (line := _difference(identity, document)) is not None:
        raise InputError(f"{folder}: {line}; pass --overwrite or choose another OUT")
    return Earlier(document, notes)


def forget(folder: Path) -> None:
    """Remove a result, and what was begun of one."""
    (folder / RUN_NAME).unlink(missing_ok=True)
    shutil.rmtree(folder / WORK_NAME, ignore_errors=True)


def summarise(out: Path, done: Collection[str], failed: Mapping[str, str], faults: Sequence[str]) -> None:
    """Write summary.csv: a row for everything that OUT holds, whoever made it, and for what could not be done.

    `done` are the names that this call has done, `failed` those it has not, with the reason; `faults` are inputs that
    got no name.  A failure of an earlier call stays until its input is done.
    """
    with held(out, wait=True):
        path = out / SUMMARY_NAME
        rows = {name: row for name in _names(out) if (row := _row(out / name)) is not None}
        before = {name: line for name, line in _failures(path).items() if name not in done and name not in rows}
        for name, line in {**before, **failed}.items():
            rows[name] = {"status": "failed", **rows.get(name, {}), "error": line}
        named = [{**row, "name": name} for name, row in rows.items()]
        write_summary(path, [*named, *({"name": "", "status": "failed", "error": line} for line in faults)])


def _document(path: Path) -> dict[str, Any] | None:
    """The content of a run.json; None if there is none to be read."""
    try:
        document = json.loads(read_limited(path, MAX_RUN_BYTES))
    except (InputError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _with_todays_choices(document: dict[str, Any]) -> tuple[str, ...]:
    """Give the choices of a result today's names; what was otherwise then, in a sentence."""
    choices = document.get("choices")
    if not isinstance(choices, dict):
        return ()
    choices["scale"] = scale_name(choices.get("scale"))
    if "min_area_px" not in choices:
        return ()
    least_px = choices.pop("min_area_px")
    downsample = document.get("magnification", {}).get("downsample", 1)
    choices["min_area"] = AUTO if least_px == 10 else f"{least_px * downsample**2:g}px"
    return (OLDER_NOTE,)


def _difference(identity: dict[str, Any], document: dict[str, Any]) -> str | None:
    """In which of its options, or else in what, a result differs from the one that is asked for."""
    now, before = (_mpp_text(one.get("image")) for one in (identity, document))
    if now != before:
        return f"holds a result made with {before}, this is {now}"
    different = first_difference(identity, document)
    if different is None:
        return None
    (what, _, field), now, before = different[0].partition("."), *different[1:]
    if what == "choices":
        return f"holds a result made with {_option(field, before)}, this is {_option(field, now)}"
    if what == "seunet":
        return f"holds a result made by seunet {before}, this is {now}"
    if what == "model":
        return "holds a result of another --model"
    where = f"`{field}`" if field else "it"
    return f"holds a result of another {what} ({where} was {str(before)[:60]}, is {str(now)[:60]})"


def _option(name: str, value: Any) -> str:
    """A choice as a user gives it."""
    if name in FLAGS:
        return FLAGS[name][bool(value)]
    return f"--{name.replace('_', '-')} {str(value)[:60]}"


def _mpp_text(image: Any) -> str:
    mpp = image.get("mpp") if isinstance(image, dict) else None
    if not isinstance(mpp, dict):
        return "no µm per pixel stated"
    sides = "×".join(dict.fromkeys(f"{mpp.get(side):g}" for side in "xy"))
    return f"--mpp {sides}" if mpp.get("source") == "user" else f"{sides} µm per pixel ({mpp.get('source')})"


def _names(out: Path) -> Iterator[str]:
    """Results in OUT, whole or begun, at any depth."""
    for place, folders, files in os.walk(out):
        if (RUN_NAME in files or WORK_NAME in folders) and Path(place) != out:
            yield Path(place).relative_to(out).as_posix()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not name.endswith(".zarr"))


def _row(folder: Path) -> dict[str, str] | None:
    """The row of a result; None of what is no result of ours."""
    if not (folder / RUN_NAME).is_file():
        return {"status": "unfinished"}
    document = _document(folder / RUN_NAME)
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
