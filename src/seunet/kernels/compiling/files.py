"""Where compiled functions are kept between two runs; nothing that is wrong with that place stops a run.

It is the first of these that can be written: `NUMBA_CACHE_DIR`, beside the source, the user's cache folder.  Where none
can (no home, a read-only one, a package that another user installed), a private temporary folder is used.  What cannot
be written (a full disk) or read back (cut short, another user's) is compiled again.

What is read there is run: hence a folder that nobody else can write to, or none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from seunet.errors import StorageError
from seunet.storage.atomic import write_bytes
from seunet.system import lock_file, private_folder

FOLDER: Final = "seunet-compiled"
REMEDY: Final = "set NUMBA_CACHE_DIR to a folder that can be written"
WAIT_SECONDS: Final = 60.0
"""How long to wait for a process that compiles the same function before it is compiled here too."""
KEPT_FILES: Final = 24
"""Of one function.  Old sources, other versions and machines go first."""
_CHECKSUM_BYTES: Final = 32


class CompiledFiles:
    """The files of one function: one for everything that its code depends on, such as signature, source and processor.

    What differs in any of these has another file, so versions of the package, of Numba and of Python share a folder,
    and processes need no common index.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self.folder, self.name = folder, name.replace("<", "").replace(">", "")

    def load(self, *key: Any) -> bytes | None:
        """What was saved; None where there is nothing, or not all of it."""
        if self.folder is None:
            return None
        try:
            data = self._path(self.folder, key).read_bytes()
        except OSError:
            return None
        checksum, code = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
        return code if hashlib.sha256(code).digest() == checksum else None

    def save(self, code: bytes, *key: Any) -> None:
        """Keep it, whole or not at all, or say once that it could not be."""
        if self.folder is None:
            return
        try:
            write_bytes(self._path(self.folder, key), hashlib.sha256(code).digest() + code)
            files = [(path.stat().st_mtime_ns, path) for path in self.folder.glob(f"{self.name}.*.nbc")]
            for _, path in sorted(files)[:-KEPT_FILES]:
                path.unlink(missing_ok=True)
        except (StorageError, OSError) as error:
            cause = error.__cause__ if isinstance(error, StorageError) else error
            warn_once(getattr(cause, "strerror", None) or type(cause).__name__)

    def lock(self) -> int | None:
        """Wait until no other process compiles this function.

        A descriptor, to be closed when this one has; None where no lock can be had.  The lock is the system's and dies
        with its process, so none is left behind.  A process that holds it for long (it was stopped) is not waited for.
        """
        if self.folder is None:
            return None
        try:
            descriptor = os.open(self.folder / f"{self.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return None
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            try:
                lock_file(descriptor)
                return descriptor
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        os.close(descriptor)
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process compiles this function inside the block."""
        descriptor = self.lock()
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _path(self, folder: Path, key: Any) -> Path:
        return folder / f"{self.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"


def folder_for(source: Path) -> Path | None:
    """Where the functions of a source file are kept; None, said once, where nothing can be."""
    return _folder_for(source.parent, os.environ.get("NUMBA_CACHE_DIR"))


@cache
def _folder_for(package: Path, chosen: str | None) -> Path | None:
    places: list[Callable[[], Path | None]] = [
        lambda: Path(chosen) / "seunet" / package.name if chosen else None,
        lambda: package / "__pycache__",
        lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seunet" / package.name,
        lambda: private_folder(FOLDER),
    ]
    for place in places:
        try:
            folder = place()
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=folder).close()
                return folder
        except (OSError, RuntimeError):  # read-only, or no home at all
            continue
    warn_once("no folder can be written")
    return None


@cache
def warn_once(reason: str) -> None:
    """Say that every run will compile, once per reason."""
    warnings.warn(f"compiled functions cannot be kept ({reason}), so every run compiles again; {REMEDY}", stacklevel=2)
