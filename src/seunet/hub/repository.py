"""`hf-hub:owner/name[@revision]`: the name of a model repository on the Hugging Face Hub."""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from seunet.errors import InputError

PREFIX: Final = "hf-hub:"
_OWNER_AND_NAME: Final = re.compile(r"[\w][\w.-]{0,95}/[\w][\w.-]{0,95}", re.ASCII)
_REVISION: Final = re.compile(r"[\w][\w./-]{0,199}", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class Repository(NamedTuple):
    """A model repository and, where it is said, which state of it: a branch, a tag or a commit."""

    name: str
    """owner/name."""
    revision: str | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether it means the same files for ever: a branch or a tag may move, a commit does not."""
        return self.revision is not None and _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}" + ("" if self.revision is None else f"@{self.revision}")


def is_on_hub(name: str | os.PathLike[str]) -> bool:
    """Whether a model is named by its repository on the hub."""
    return os.fspath(name).startswith(PREFIX)


def parsed(text: str | os.PathLike[str]) -> Repository:
    """The repository of a name; the prefix may be left out where nothing else is meant.

    >>> parsed("hf-hub:somebody/nuclei@v1")
    Repository(name='somebody/nuclei', revision='v1')
    """
    name, at, revision = os.fspath(text).removeprefix(PREFIX).partition("@")
    fits = _OWNER_AND_NAME.fullmatch(name) and ".." not in f"{name}{revision}" and "--" not in name
    if not fits or (at and not _REVISION.fullmatch(revision)):
        raise InputError(f"{text}: is no name of a repository; write {PREFIX}owner/name or {PREFIX}owner/name@revision")
    return Repository(name, revision or None)
