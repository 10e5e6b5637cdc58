"""The folder of a run: whose it is, and what lies where."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from seunet.errors import InputError
from seunet.scale.files import CONFIG_NAME, TENSORS_NAME
from seunet.storage.output_folder import locked, names_in, overwriting, something_else, sweep
from seunet.training.distributed import Processes


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
        self.estimator = (root / CONFIG_NAME, root / TENSORS_NAME)
        self._held: int | None = None

    def check(self, resume: bool, overwrite: bool) -> None:
        """Refuse what would lose or mix up runs: a new run in a used folder, a resumed one where nothing is."""
        if resume and overwrite:
            raise InputError("--resume continues a run and --overwrite replaces it; give one of them")
        entries = names_in(self.root, "the run")
        if resume:
            if not self.last.is_file():
                raise InputError(f"{self.root}: holds no run to resume (no {self.last.name}); start without --resume")
        elif entries and not overwrite:
            if self.config.is_file():
                raise InputError(f"{self.root}: holds a run; pass --resume to continue it or --overwrite to replace it")
            raise something_else(self.root, entries[0], "choose a new or empty folder")

    def claim(self, processes: Processes, resume: bool, overwrite: bool) -> None:
        """Lock the folder for all processes together, and empty it where that is asked for.

        It is held until this process ends, however it ends: two runs in one folder would write over each other.
        """
        self.check(resume, overwrite)
        processes.wait()  # until all have looked, before one changes anything
        if processes.lead:
            self._held = locked(self.root, "training")
            if overwrite:
                self.clear()
        processes.wait()

    def release(self) -> None:
        """Let others have the folder."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def clear(self) -> None:
        """Remove what a run writes and nothing else."""
        with overwriting(self.root):
            for file in (self.config, self.log, self.clock, self.last, self.best, self.stopped, *self.estimator):
                file.unlink(missing_ok=True)
            for folder in (self.model, self.board):
                if folder.is_dir():
                    shutil.rmtree(folder)

    def sweep(self) -> None:
        """Remove what the run before left: files that a kill left half written, and why it stopped."""
        sweep(self.root, self.model)
        self.stopped.unlink(missing_ok=True)
