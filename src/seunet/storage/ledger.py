"""Which tiles of an image are done: a line for each, written after its bytes are on the disk.

The first line says what is being done.  A run that is killed at any moment leaves whole lines and perhaps a torn last
one, which is ignored: that tile is done again, with the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from seunet.errors import StorageError
from seunet.storage.atomic import write_text, writing
from seunet.storage.jsonl import Journal, whole_lines

LEDGER: Final = "ledger.jsonl"
_FORMAT: Final = "seunet-ledger-2"
_OF_FILES: Final = ("split", "min_area_px", "smooth", "zipped")
"""Choices that ledgers begun before name; no tile depends on them."""


class Ledger:
    """The record of an unfinished piece of work in `folder`, for which `identity` (plain values) stands."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._path = folder / LEDGER
        wanted = _line({"format": _FORMAT, **identity})
        before = _read(self._path)
        lines = whole_lines(before)
        self.note: str | None = None
        """A sentence, if there was other work in the folder that is now given up."""
        self.finished: list[dict[str, Any]] = []
        if lines and _line(_as_today(lines[0])) == wanted:
            self.finished = _records(lines[1:])
            kept = b"".join([wanted, *(_line(record) for record in self.finished)])
        else:
            kept = wanted
            if before:
                self.note = f"{folder}: starts afresh; {_difference(lines, wanted)}"
        self.afresh = not self.finished
        """Whether nothing that lies in the folder is of use."""
        self._kept, self._before = kept, before
        self._journal: Journal | None = None

    def begin(self) -> None:
        """Start writing: call when what lies in the folder beside the ledger fits it."""
        if self._kept != self._before:
            write_text(self._path, self._kept.decode())
        self._journal = Journal(self._path)

    def add(self, record: dict[str, Any]) -> None:
        """A tile whose bytes are on the disk."""
        if self._journal is None:
            raise ValueError("the ledger was not begun")
        self._journal.append_line(_line(record))
        self._journal.sync()
        self.finished.append(record)

    def __enter__(self) -> Self:
        with writing(self._path.parent):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self.afresh:  # first of all that is removed: files without a record count for nothing
                self._path.unlink(missing_ok=True)
                self._before = b""
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()


def begun_with(folder: Path) -> dict[str, Any]:
    """What the work was begun with that lies unfinished in `folder`; nothing where there is none."""
    lines = whole_lines(_read(folder / LEDGER))
    return _as_today(lines[0]) if lines else {}


def _as_today(line: bytes) -> dict[str, Any]:
    """The first line of a ledger, as it would be written today."""
    try:
        header = json.loads(line)
    except ValueError:
        return {}
    image = header.get("image") if isinstance(header, dict) else None
    choices = image.get("choices") if isinstance(image, dict) else None
    if isinstance(choices, dict):
        for name in _OF_FILES:
            choices.pop(name, None)
        if choices.get("scale") == "told":
            choices["scale"] = "stated"
    return header if isinstance(header, dict) else {}


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error


def _records(lines: list[bytes]) -> list[dict[str, Any]]:
    """The records up to the first line that is none."""
    records: list[dict[str, Any]] = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not isinstance(record, dict) or "tile" not in record:
            break
        records.append(record)
    return records


def _difference(lines: list[bytes], wanted: bytes) -> str:
    """What is no longer as it was."""
    try:
        old, new = json.loads(lines[0]), json.loads(wanted)
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    except (IndexError, ValueError, TypeError):
        return "the record of the earlier run cannot be read"
    return f"not as in the earlier run: {', '.join(changed)}"
