"""The folder of a run: whose it is, and what lies where."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import IO

from seunet.errors import InputError, StorageError


class RunFolder:
    """Paths of a run; `check` decides whether it may be written to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.log = root / "log.jsonl"
        self.clock = root / "clock.jsonl"
        self.last = root / "last.safetensors"
        self.best = root / "best.safetensors"
        self.model = root / "model"
        self.board = root / "tensorboard"
        self.stopped = root / "stopped.json"
        self._held: IO[bytes] | None = None

    def check(self, resume: bool, overwrite: bool) -> None:
        """Refuse what would lose or mix up runs: a new run in a used folder, a resumed one where nothing is."""
        if resume and overwrite:
            raise InputError("--resume continues a run and --overwrite replaces it; give one of them")
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"{self.root}: is a file; choose a folder for the run")
        try:
            entries = sorted({entry.name for entry in self.root.iterdir()} - {".lock"}) if self.root.is_dir() else []
        except OSError as error:
            raise StorageError(f"{self.root}: cannot be read ({error.strerror}); check its permissions") from error
        if resume:
            if not self.last.is_file():
                raise InputError(f"{self.root}: holds no run to resume (no {self.last.name}); start without --resume")
        elif entries and not overwrite:
            if self.config.is_file():
                raise InputError(f"{self.root}: holds a run; pass --resume to continue it or --overwrite to replace it")
            raise InputError(f"{self.root}: holds something else ({entries[0]}); choose a new or empty folder")

    def lock(self) -> None:
        """Held until this process ends, however it ends: two runs in one folder would write over each other."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._held = (self.root / ".lock").open("wb")
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self.root}: another process is training there; wait for it or stop it") from None
        except OSError as error:
            raise StorageError(
                f"{self.root}: cannot be written ({error.strerror}); free space or choose another place"
            ) from error

    def release(self) -> None:
        """Let others have the folder."""
        if self._held is not None:
            self._held.close()

    def clear(self) -> None:
        """Remove what a run writes and nothing else."""
        try:
            for file in (self.config, self.log, self.clock, self.last, self.best, self.stopped):
                file.unlink(missing_ok=True)
            for folder in (self.model, self.board):
                if folder.is_dir():
                    shutil.rmtree(folder)
        except OSError as error:
            raise StorageError(f"{self.root}: cannot be overwritten ({error.strerror})") from error

    def sweep(self) -> None:
        """Remove what the run before left: files that a kill left half written, and why it stopped."""
        for part in (*self.root.glob(".*.part"), *self.model.glob(".*.part"), self.stopped):
            part.unlink(missing_ok=True)
