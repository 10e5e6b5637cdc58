"""Files read with a limit, their hash, JSON in one way of writing, and the small tables that come with data sets."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from pathlib import Path

from seunet.errors import InputError, SeunetError
from seunet.limits import MAX_TABLE_BYTES


def read_limited(
    path: Path,
    limit_bytes: int,
    remedies: tuple[str, str] = (
        "check the path and its permissions",
        "it is not the file meant, or must be split",
    ),
    *,
    kind: type[SeunetError] = InputError,
    where: str | None = None,
) -> bytes:
    """The bytes of a file that must not be larger than `limit_bytes`.

    What is to be done about one that cannot be read or is too large stands in `remedies`; `kind` is the error raised
    and `where` what it calls the file, by default by its name.
    """
    where = path.name if where is None else where
    try:
        with path.open("rb") as file:
            # What the file has and a look beyond: asking for the limit would reserve that much memory.
            size_bytes = os.fstat(file.fileno()).st_size
            data = file.read(min(size_bytes, limit_bytes) + 1)
            if size_bytes < len(data) <= limit_bytes:  # a pipe, or a file that grows
                data += file.read(limit_bytes + 1 - len(data))
    except OSError as error:
        raise kind(f"{where}: cannot be read ({error.strerror}); {remedies[0]}") from error
    if len(data) > limit_bytes:
        raise kind(f"{where}: larger than {limit_bytes:,} bytes; {remedies[1]}")
    return data


def canonical_json(value: object) -> str:
    """The one way a value is written: sorted keys, so that the same content is the same bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def sha256(data: bytes) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def read_table(path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """Rows of a CSV (or, by its name, TSV) file whose header has the required columns and no unknown ones."""
    data = read_limited(path, MAX_TABLE_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: not UTF-8 text ({error.reason}); save it as CSV, UTF-8") from error
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(path, text), strict=True)
    try:
        lines = [[cell.strip() for cell in line] for line in reader if any(cell.strip() for cell in line)]
    except csv.Error as error:
        raise InputError(f"{path.name} line {reader.line_num}: {error}; save it as CSV again") from error
    if not lines:
        raise InputError(f"{path.name}: is empty; its first line must be {','.join(required)}")
    header = [cell.lower() if cell.lower() in (*required, *optional) else cell for cell in lines[0]]
    _check_header(path, header, required, optional)
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise InputError(f"{path.name} row {number}: has {len(line)} cells, the header {len(header)}; correct it")
    return [dict(zip(header, line, strict=True)) for line in lines[1:]]


def _delimiter(path: Path, text: str) -> str:
    """Spreadsheets of some languages write `;` where others write `,`."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def number_in(text: str, where: str) -> float:
    """A cell that must hold a number, with a point, or with a comma that cannot be one of thousands."""
    try:
        return float(text.replace(",", ".") if re.fullmatch(r"\d+,(\d{1,2}|\d{4,})", text) else text)
    except ValueError:
        raise InputError(f"{where} {text[:40]!r} is not a number; write it like 0.25") from None


def whole_number(text: str, where: str, low: int, high: int) -> int:
    """A cell that must hold a whole number from low to high."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
        raise InputError(f"{where}: {text[:40]!r} is not a whole number from {low} to {high}; correct the table")
    return int(text)


def _check_header(path: Path, header: list[str], required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    missing = [name for name in required if name not in header]
    unknown = [name for name in header if name not in (*required, *optional)]
    if missing or unknown or len(set(header)) != len(header):
        what = f"lacks {missing[0]}" if missing else f"has {unknown[0]!r}" if unknown else "repeats a column"
        rest = f" (optional: {','.join(optional)})" if optional else ""
        raise InputError(f"{path.name}: header {what[:60]}; columns are {','.join(required)}{rest}")
