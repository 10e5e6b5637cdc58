"""Which tiles of a slide are done: a line each, written after the tile's pixels are on the disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from seunet.errors import StorageError

FORMAT: Final = "seunet-ledger/1"


class Ledger:
    """A file of JSON lines; the first says whose it is.  A line cut short by a kill is as if it had not been begun."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        """Go on with the ledger in `path` if it is of this `identity`; else `rows` is empty and it begins anew."""
        self.path = path
        self._head = json.loads(json.dumps({"format": FORMAT, **identity}))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.rows = self._read()
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            if not self.rows:
                os.ftruncate(self._file, 0)
                self._append(self._head)
        except OSError as error:
            raise self._fault(error) from error

    @property
    def begun_before(self) -> bool:
        return bool(self.rows)

    def note(self, row: dict[str, Any]) -> None:
        """One more tile is done; on return this is on the disk."""
        try:
            self._append(row)
        except OSError as error:
            raise self._fault(error) from error

    def close(self) -> None:
        os.close(self._file)

    def _append(self, row: dict[str, Any]) -> None:
        data = memoryview(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def _read(self) -> list[dict[str, Any]]:
        if not self.path.is_file():
            return []
        whole, _, _torn = self.path.read_bytes().rpartition(b"\n")
        try:
            rows = [json.loads(line) for line in whole.split(b"\n") if line]
        except ValueError:
            return []
        if not rows or rows[0] != self._head:
            return []
        # What follows the last whole line is cut off, so that the next line does not continue it.
        os.truncate(self.path, len(whole) + 1)
        return rows[1:]

    def _fault(self, error: OSError) -> StorageError:
        return StorageError(f"{self.path}: cannot be written ({error.strerror}); free space or choose another place")
