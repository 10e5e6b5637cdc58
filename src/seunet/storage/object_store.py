"""Files in object stores and on web servers, by fsspec: s3://, gs://, https:// (reading only).

Whatever goes wrong is one line with the address, without what follows its "?" and without the words of the library:
both may hold secrets.  Nothing is waited for longer than CONTACT_SECONDS before the store has answered once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from seunet.errors import InputError, SeunetError, StorageError
from seunet.storage.atomic import atomic_path

READ_FROM: Final = ("s3", "gs", "gcs", "http", "https")
WRITTEN_TO: Final = ("s3", "gs", "gcs")
CONTACT_SECONDS = 12
STALL_SECONDS: Final = 60
"""A transfer in which nothing comes for so long is given up."""

_CREDENTIALS: Final = {"s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"}

T = TypeVar("T")


class Remote(NamedTuple):
    """A file in a store, as the store has it now."""

    url: str
    size_bytes: int
    modified_ns: int
    """0 where the server does not say."""


def shown(url: str) -> str:
    """The address without user, password and what follows "?": they may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_kind(url: str, known: tuple[str, ...]) -> None:
    """Refuse an address that is not of these kinds."""
    kind = urlsplit(url).scheme
    if kind not in known:
        kinds = ", ".join(f"{name}://" for name in known)
        raise InputError(f"{shown(url)}: {kind}:// is not among {kinds}; use one of them or a path")


def files_at(url: str, recursive: bool = False) -> list[Remote]:
    """The file at `url`, or the files in the folder or of the pattern, in order; an InputError where there is none."""
    check_kind(url, READ_FROM)

    def listed(system: Any, path: str) -> list[Remote]:
        if urlsplit(url).scheme in ("http", "https"):  # a page is no folder, and "?" no pattern
            return [_remote(url, system.info(path))]
        if any(sign in path for sign in "*[?"):
            found = system.glob(path, detail=True)
        elif (facts := system.info(path))["type"] == "file":
            found = {path: facts}
        else:
            found = system.find(path, maxdepth=None if recursive else 1, detail=True)
        return [_remote(system.unstrip_protocol(name), facts) for name, facts in sorted(found.items())]

    return _asked(url, listed, CONTACT_SECONDS)


def fetch(remote: Remote, path: Path) -> None:
    """Copy it to `path`, whole or not at all, with the time of its last change."""
    with atomic_path(path) as part:
        _asked(remote.url, lambda system, source: system.get_file(source, str(part)))
        if part.stat().st_size != remote.size_bytes:
            there, here = remote.size_bytes, part.stat().st_size
            raise InputError(f"{shown(remote.url)}: has {there:,} bytes and {here:,} came; try again")
        os.utime(part, ns=(remote.modified_ns, remote.modified_ns))


def send(path: Path, url: str) -> None:
    """Copy a file to `url`; it is seen there once it is whole."""
    _asked(url, lambda system, target: system.put_file(str(path), target), kind=StorageError)


def remove(url: str) -> None:
    """Remove a file, if it is there."""

    def gone(system: Any, path: str) -> None:
        if system.exists(path):
            system.rm_file(path)

    _asked(url, gone, CONTACT_SECONDS, StorageError)


def files_below(url: str) -> dict[str, Remote]:
    """All files of a folder at any depth, by their names from there; none where there is no such folder."""

    def found(system: Any, path: str) -> dict[str, Remote]:
        files: dict[str, Any] = system.find(path, detail=True)
        base = path.rstrip("/") + "/"
        return {
            name.removeprefix(base): _remote(system.unstrip_protocol(name), facts)
            for name, facts in files.items()
            if name.startswith(base)
        }

    return _asked(url, found, CONTACT_SECONDS)


def _asked(
    url: str, call: Callable[[Any, str], T], seconds: float | None = None, kind: type[SeunetError] = InputError
) -> T:
    """What `call` (file system, path) returns; within so many seconds if they are given."""
    outcome: list[Any] = [TimeoutError()]

    def ask() -> None:
        try:
            outcome[0] = (call(*_system(url)),)
        except BaseException as error:
            outcome[0] = error

    # In a thread of its own: libraries try again and again before they give up.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    if not isinstance(outcome[0], tuple):
        raise _in_one_line(url, outcome[0], kind) from None
    found: T = outcome[0][0]
    return found


def _system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    import fsspec

    kind = urlsplit(url).scheme
    options: dict[str, Any] = {"use_listings_cache": False}
    if kind == "s3":
        limits = {"connect_timeout": 5, "read_timeout": STALL_SECONDS, "retries": {"max_attempts": 2}}
        options |= {"config_kwargs": limits}
    elif kind in ("http", "https"):
        import aiohttp

        options["client_kwargs"] = {
            "timeout": aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=STALL_SECONDS)
        }
    return fsspec.core.url_to_fs(url, **options)  # type: ignore[no-any-return]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised for."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _in_one_line(url: str, error: BaseException, kind: type[SeunetError]) -> BaseException:
    """What to say of it: never in the library's words."""
    if isinstance(error, SeunetError) or not isinstance(error, Exception):
        return error
    where, name = shown(url), type(error).__name__
    if any(isinstance(cause, ImportError) for cause in _causes(error)):
        return InputError(f"{where}: needs packages for object stores; pip install 'seunet[cloud]'")
    if any("Credential" in type(cause).__name__ for cause in _causes(error)):
        variables = _CREDENTIALS.get(urlsplit(url).scheme, "GOOGLE_APPLICATION_CREDENTIALS")
        return kind(f"{where}: no credentials for this store; set {variables}")
    unanswered = any(sign in type(cause).__name__ for cause in _causes(error) for sign in ("Connect", "Timeout"))
    if isinstance(error, FileNotFoundError) and not unanswered:
        return kind(f"{where}: no such file, folder or bucket; check the address")
    if isinstance(error, PermissionError):
        return kind(f"{where}: access denied; check the credentials and their rights")
    return kind(f"{where}: the store cannot be used ({name}); check the network and the address, then try again")


def _remote(url: str, facts: dict[str, Any]) -> Remote:
    if facts.get("size") is None:
        raise InputError(f"{shown(url)}: the server does not say how large it is; copy it to a folder")
    keys = ("LastModified", "updated", "mtime", "last_modified", "Last-Modified")
    changed = next((facts[key] for key in keys if facts.get(key)), None)
    return Remote(url, int(facts["size"]), _nanoseconds(changed))


def _nanoseconds(changed: Any) -> int:
    """Since 1970, of whatever a store calls the time of the last change."""
    if isinstance(changed, str):
        try:
            changed = datetime.fromisoformat(changed.replace("Z", "+00:00"))
        except ValueError:
            changed = parsedate_to_datetime(changed)
    if not isinstance(changed, datetime):
        return 0
    aware = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1_000_000) * 1000
