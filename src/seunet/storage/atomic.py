"""Files are written through here: whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seunet.errors import StorageError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends well: part → fsync → replace.

    A crash, a kill or a full disk at any moment leaves the old file (or none), never half a file.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            yield part
            _sync(part)
            _open_up(part, 0o666)
            os.replace(part, path)
            _sync(path.parent)
        finally:
            with suppress(OSError):
                part.unlink()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place, and that of a folder there, when the block ends well.

    A kill at any moment leaves the old folder, none or the new one, never half of one; what is left over has a name
    that begins with a dot and ends in .part.  The files in it are not synced one by one: there may be 100,000.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        old = part.with_suffix(".old.part")
        try:
            yield part
            _open_up(part, 0o777)
            if path.exists():
                os.replace(path, old)
            os.replace(part, path)
            _sync(path.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def _open_up(part: Path, mode: int) -> None:
    """What `tempfile` makes is private; a result is as readable as the user's umask says."""
    umask = os.umask(0)
    os.umask(umask)
    part.chmod(mode & ~umask)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_path(path) as part:
        part.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 to `path` atomically."""
    write_bytes(path, text.encode("utf-8"))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full or read-only disk in the block is a StorageError in one line."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"{path}: cannot be written ({reason}); free space or choose another place") from error
