"""A folder that results go to: whose it is, who works in it, and what a kill left there."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from seunet.errors import InputError, StorageError
from seunet.storage.atomic import writing
from seunet.storage.files import canonical_json
from seunet.system import lock_file

LOCK: Final = ".lock"
WAIT_SECONDS: Final = 0.02
"""Between two looks at a lock that another process holds."""


def names_in(folder: Path, meant_for: str) -> list[str]:
    """What lies in a folder that is to be written to, sorted, without its lock; nothing where there is none yet."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; choose a folder for {meant_for}")
    try:
        return sorted({entry.name for entry in folder.iterdir()} - {LOCK}) if folder.is_dir() else []
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read ({error.strerror}); check its permissions") from error


def something_else(folder: Path, name: str, remedy: str) -> InputError:
    """The folder is somebody else's, as `name` in it shows."""
    return InputError(f"{folder}: holds something else ({name}); {remedy}")


def first_difference(now: Any, before: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """(dotted name, now, before) of the first thing that differs between two identities, as they are in JSON.

    On the top, what only `before` has is not looked at: a document may hold more than its identity.
    """
    if isinstance(now, dict) and isinstance(before, dict):
        inner = (
            first_difference(now.get(key), before.get(key), f"{name}.{key}" if name else key)
            for key in ({**now, **before} if name else now)
        )
        return next((found for found in inner if found is not None), None)
    return None if canonical_json(now) == canonical_json(before) else (name, now, before)


@contextmanager
def overwriting(folder: Path) -> Iterator[None]:
    """What is removed in the block must be removable."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{folder}: cannot be overwritten ({error.strerror}); check its permissions") from error


def sweep(*folders: Path) -> None:
    """Remove what runs that were killed left half written (storage/atomic.py)."""
    for part in (part for folder in folders for part in folder.glob(".*.part")):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def locked(folder: Path, doing: str = "at work", wait: bool = False) -> int:
    """Make `folder` and lock it: a descriptor that holds the lock until it is closed; `wait` for who has it.

    The lock is the system's and dies with the process: a file that a kill leaves behind hinders nobody.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return _locked(folder / LOCK, wait)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is {doing} there; wait for it or stop it") from None


@contextmanager
def held(folder: Path, wait: bool = False) -> Iterator[None]:
    """Make `folder`, hold it until the block or this process ends, and remove what a kill left half written in it.

    With `wait`, wait for a process that holds it, instead of an error.  A folder that is empty at the end is removed.
    """
    try:
        lock = locked(folder, wait=wait)
    except StorageError as error:
        if isinstance(error.__cause__, NotADirectoryError | FileExistsError):
            raise InputError(f"{folder}: is a file or lies below one; choose another OUT") from None
        raise
    try:
        sweep(folder)
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()  # of an input that could not even be opened nothing is left
        os.close(lock)


def _locked(path: Path, wait: bool) -> int:
    """The descriptor of the file at `path`, locked; a BlockingIOError if another process has it, or `wait` for it."""
    while True:
        lock = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            lock_file(lock)
            # The one who held it may have removed it meanwhile: then this is no longer the file that others lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return lock
        except BlockingIOError:
            if not wait:
                os.close(lock)
                raise
            time.sleep(WAIT_SECONDS)
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
