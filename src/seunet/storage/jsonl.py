"""Files of one JSON object per line that only ever grow: a kill leaves whole lines and perhaps a torn last one.

The log of a training run is one, cut back on resuming to where its checkpoint was taken; the ledger of tiles another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seunet.errors import InputError
from seunet.storage.atomic import writing


class Journal:
    """Appends rows to a file, from byte `start` on."""

    def __init__(self, path: Path, start: int | None = None) -> None:
        """`start` None goes on after the last whole line; a number cuts the file back to that many bytes first."""
        self.path = path
        with writing(path):
            found = path.read_bytes() if path.is_file() else b""
            if start is not None and len(found) < start:
                raise InputError(f"{path}: shorter than when the checkpoint was taken; restore it, or --overwrite")
            # Unbuffered: what a full disk refused must not be tried again when the file is closed.
            self._file = path.open("ab", buffering=0)
            self._file.truncate(found.rfind(b"\n") + 1 if start is None else start)

    def append(self, row: dict[str, Any]) -> None:
        self.append_line(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def append_line(self, line: bytes) -> None:
        left = memoryview(line)
        with writing(self.path):
            while left:
                left = left[self._file.write(left) :]

    def sync(self) -> int:
        """Make sure all rows are on the disk; how many bytes there are."""
        with writing(self.path):
            os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def whole_lines(data: bytes) -> list[bytes]:
    """The lines that were written to their end."""
    return [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a log; a last line that a kill cut short is left out."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def rounded(values: Any, digits: int = 6) -> Any:
    """Numbers of a tensor's list to so many significant digits: a log is for reading and plotting."""
    if isinstance(values, list):
        return [rounded(value, digits) for value in values]
    return float(f"{values:.{digits}g}")
