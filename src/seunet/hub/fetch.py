"""Files of a repository, in the cache of the hub's client: the named ones, at one commit, as they are listed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from seunet.errors import ModelFileError
from seunet.hub.client import Listed, Listing, UnreachableError, api, listing, one_line, refuse_code
from seunet.hub.repository import Repository
from seunet.storage.files import read_limited, sha256

SHA256_DIGITS: Final = 64


class Wanted(NamedTuple):
    """What is fetched of a repository, and nothing else."""

    config: str
    """Fetched and checked before the others."""
    optional: tuple[str, ...]
    weights: str
    """Fetched last: where it is in the cache, the others that there are are too."""
    check: Callable[[Path], Any]
    """Raises where the config is another program's."""
    limit_bytes: int
    """Of each file."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.config, *self.optional, self.weights)


class Fetched(NamedTuple):
    """The files in a folder of the cache, and the commit that they are of."""

    folder: Path
    repository: Repository


def fetch_files(repository: Repository, wanted: Wanted) -> Fetched:
    """The wanted files at the repository's revision, from the cache where they are the same.

    A commit that is in the cache is taken from there unasked.  A branch or a tag is looked up; where the hub does not
    answer, what it was when it was last looked up is taken, with a warning, or without one if HF_HUB_OFFLINE says so.
    """
    api()
    if repository.is_pinned and (held := _cached(repository, wanted, every=True)) is not None:
        return held
    try:
        found = listing(repository)
    except UnreachableError as reason:
        held = _cached(repository, wanted, every=False)
        if held is None:
            raise
        if not _is_offline():
            warnings.warn(f"{reason}; {held.repository} from the cache is used", stacklevel=2)
        return held
    if found is None:
        raise ModelFileError(f"{repository}: no such repository, or a private one; check the name or `hf auth login`")
    return _downloaded(repository, found, wanted)


def _downloaded(asked: Repository, found: Listing, wanted: Wanted) -> Fetched:
    refuse_code(found)
    missing = next((name for name in (wanted.config, wanted.weights) if name not in found.files), None)
    if missing is not None:
        raise ModelFileError(f"{found.repository}: has no {missing}; it is no model of seunet")
    too_large = next((name for name in wanted.names if found.size_bytes(name) > wanted.limit_bytes), None)
    if too_large is not None:
        size = f"{found.size_bytes(too_large):,} bytes; the limit is {wanted.limit_bytes:,}"
        raise ModelFileError(f"{found.repository}: {too_large} has {size}")
    # By the name that was asked for, which the client then keeps for offline use; the others by the commit.
    config = _file(asked, found, wanted.config)
    if config.parent.name != found.repository.revision:
        raise UnreachableError(f"{asked}: was changed while it was fetched; try again")
    wanted.check(config)
    for name in (*wanted.optional, wanted.weights):
        if name in found.files:
            _file(found.repository, found, name)
        else:
            _note_absence(found.repository, name)
    return Fetched(config.parent, found.repository)


def _file(repository: Repository, found: Listing, name: str) -> Path:
    """The file in the cache, equal to what is listed; one that is damaged is fetched once more, then refused."""
    for again in (False, True):
        path = _download(repository, name, again)
        if _is_as_listed(path, found.files[name]):
            return path
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    raise ModelFileError(f"{found.repository}: {name} is not the file that is listed, but altered; fetch it elsewhere")


def _download(repository: Repository, name: str, again: bool) -> Path:
    hub = api()
    with one_line(repository):
        return Path(hub.hf_hub_download(repository.name, name, revision=repository.revision, force_download=again))


def _note_absence(repository: Repository, name: str) -> None:
    """Ask for a file that is not there: the client keeps that answer, so the commit is complete without the network."""
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with suppress(RemoteEntryNotFoundError):
        _download(repository, name, False)


def _is_as_listed(path: Path, listed: Listed) -> bool:
    """By sha256 where the hub lists one, else by git's hash of a file."""
    if path.stat().st_size != listed.size_bytes:
        return False
    data = read_limited(path, listed.size_bytes)
    if len(listed.hash) == SHA256_DIGITS:
        return sha256(data) == listed.hash
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == listed.hash


def _cached(repository: Repository, wanted: Wanted, *, every: bool) -> Fetched | None:
    """The files in the cache, if config and weights are there; with `every`, if it is known of each whether it is."""
    from huggingface_hub import try_to_load_from_cache

    held = {name: try_to_load_from_cache(repository.name, name, revision=repository.revision) for name in wanted.names}
    config = held[wanted.config]
    if not isinstance(config, str) or not isinstance(held[wanted.weights], str):
        return None
    if every and None in held.values():
        return None
    return Fetched(Path(config).parent, Repository(repository.name, Path(config).parent.name))


def _is_offline() -> bool:
    from huggingface_hub.constants import is_offline_mode

    return is_offline_mode()
