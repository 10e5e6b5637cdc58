"""Where copies of files in object stores lie for as long as they are needed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from seunet.errors import StorageError
from seunet.storage.atomic import writing
from seunet.system import private_folder

VARIABLE: Final = "SEUNET_CACHE"


def cache_folder() -> Path:
    """The folder for copies: $SEUNET_CACHE, the user's cache folder, or one in the temporary folder."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.access(usual, os.W_OK) or os.access(usual.parent, os.W_OK):
        return usual / "seunet" / "stores"
    private = private_folder("seunet-stores")
    if private is None:
        raise StorageError(f"no folder for copies of files in stores can be written; set {VARIABLE} to one")
    return private


def copy_path(url: str) -> Path:
    """Where the copy of a file goes: a folder of this process, in which paths are those of the store."""
    parts = urlsplit(url)
    inner = [part for part in unquote(parts.path).split("/") if part not in ("", ".", "..")]
    return _inputs(os.getpid()).joinpath(parts.scheme, parts.netloc.rpartition("@")[2] or "_", *inner)


def forget_copies() -> None:
    """Remove the copies of this process, and what killed ones left behind."""
    folder = cache_folder()
    for path in folder.glob("in-*") if folder.is_dir() else ():
        number = path.name.removeprefix("in-")
        if number.isdigit() and (int(number) == os.getpid() or not _lives(int(number))):
            shutil.rmtree(path, ignore_errors=True)


def check_room(folder: Path, needed_bytes: int, what: str) -> None:
    """Refuse to begin what the disk cannot hold."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        room = f"{needed_bytes / 1e9:.1f} GB are needed and {free / 1e9:.1f} are free"
        raise StorageError(f"{what}: {room} in {cache_folder()}; free space or set {VARIABLE} to another disk")


def _inputs(pid: int) -> Path:
    return cache_folder() / f"in-{pid}"


def _lives(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
