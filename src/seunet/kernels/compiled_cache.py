"""Where compiled functions are kept between two runs; nothing that is wrong with that place stops a run.

The place is Numba's: `NUMBA_CACHE_DIR`, beside the source or in the user's cache folder, the first that can be
written.  Where none can (no home, a read-only one, a package that another user installed), a private temporary folder
is used.  What cannot be written (a full disk) or read back (cut short, another user's) is compiled again.

What is read there is unpickled, which can run code: hence a folder that nobody else can write to, or none.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite
import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.serialize import dumps

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
    """The files of one function: one per signature, source, processor and version of Numba and Python.

    What differs in any of these has a file of its own, so versions can share a folder.  (Numba has one index for all
    signatures of a function; two processes that write at once can make it name the code of another signature.)
    """

    def __init__(self, function: Any, folder: Path, source_stamp: Any) -> None:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.folder = folder
        self.name = name.replace("<", "").replace(">", "")
        versions = numba.__version__, llvmlite.__version__, sys.version, getattr(sys, "abiflags", "")
        self.made_from = source_stamp, *versions

    def path(self, key: Any) -> Path:
        """Where the code for Numba's `key` is, or will be."""
        digest = hashlib.sha256(repr((key, self.made_from)).encode()).hexdigest()
        return self.folder / f"{self.name}.{digest[:24]}.nbc"

    def load(self, key: Any) -> Any:
        """What was saved; None where there is nothing, or not all of it."""
        try:
            data = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        checksum, code = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
        return pickle.loads(code) if hashlib.sha256(code).digest() == checksum else None

    def save(self, key: Any, data: Any) -> None:
        """Keep it, whole or not at all."""
        code = dumps(data)
        write_bytes(self.path(key), hashlib.sha256(code).digest() + code)
        files = [(path.stat().st_mtime_ns, path) for path in self.folder.glob(f"{self.name}.*.nbc")]
        for _, path in sorted(files)[:-KEPT_FILES]:
            path.unlink(missing_ok=True)

    def lock(self) -> int | None:
        """A descriptor to be closed when the function is compiled; None where no lock can be had.

        The lock is the system's: it dies with its process, so none is left behind.  Another process that holds it for
        long (one that was stopped) is not waited for.
        """
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


class KeptFunction(FunctionCache):
    """Numba's cache of one function with files of ours, which may fail, and compiled by one process at a time.

    Numba asks for a function (`load_overload`), compiles it if there is none, and hands it over (`save_overload`).
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = CompiledFiles(function, Path(self.cache_path), self._impl.locator.get_source_stamp())
        self._lock: int | None = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What is on disk, also where another process has just compiled it; None, and the lock, where it is not."""
        found = self._read(signature, context)
        if found is None and self._lock is None:
            self._lock = self._cache_file.lock()
            found = self._read(signature, context)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep it, or say once that it could not be."""
        try:
            super().save_overload(signature, data)
        except (StorageError, OSError) as error:
            cause = error.__cause__ if isinstance(error, StorageError) else error
            _warn_once(getattr(cause, "strerror", None) or type(cause).__name__)
        finally:
            self._unlock()

    def flush(self) -> None:
        """Nothing is to be emptied: what is out of date has another name."""

    def _read(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception:  # whatever another user's file, or a damaged pickle, gives
            return None

    def _unlock(self) -> None:
        if self._lock is not None:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = None


def cache_of(function: Any) -> Any:
    """Numba's cache for `function`, in the first place that can be written."""
    kept = _kept(function)
    if kept is None and (folder := _temporary_folder()) is not None:
        config: Any = numba.config
        chosen, config.CACHE_DIR = config.CACHE_DIR, folder
        try:
            kept = _kept(function)
        finally:
            config.CACHE_DIR = chosen
    return NullCache() if kept is None else kept


def _kept(function: Any) -> KeptFunction | None:
    try:
        return KeptFunction(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return None


@cache
def _temporary_folder() -> str | None:
    folder = private_folder(FOLDER)
    if folder is None:
        _warn_once("no folder can be written")
    return None if folder is None else str(folder)


@cache
def _warn_once(reason: str) -> None:
    warnings.warn(f"compiled functions cannot be kept ({reason}), so every run compiles again; {REMEDY}", stacklevel=2)
