"""A folder that one process works in: two runs of one slide would write over each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from seunet.errors import InputError, StorageError

LOCK: Final = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make `folder` and hold it until the block or this process ends; one that is empty then is removed.

    The lock is the system's and dies with the process: a file that a kill leaves behind hinders nobody.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder / LOCK)
    except BlockingIOError:
        raise InputError(f"{folder}: another process is at work there; wait for it or stop it") from None
    except (NotADirectoryError, FileExistsError):
        raise InputError(f"{folder}: is a file or lies below one; choose another OUT") from None
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written ({error.strerror}); choose another place") from error
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()  # of an input that could not even be opened nothing is left
        os.close(lock)


def _locked(path: Path) -> int:
    """The descriptor of the file at `path`, locked; a BlockingIOError if another process has it."""
    while True:
        lock = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The one who held it may have removed it meanwhile: then this is no longer the file that others lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
