"""What can go wrong, as types that carry an exit code.

An error is one line: what, where, remedy.  Library callers catch `SeunetError` or the built-in it also is
(`ValueError` for bad input, `OSError` for storage); the command line prints the line and exits with `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


class SeunetError(Exception):
    """The root of every error this package raises on purpose."""

    exit_code = 70


class InputError(SeunetError, ValueError):
    """Bad input or usage: the caller can correct it."""

    exit_code = 2


class StorageError(SeunetError, OSError):
    """A file could not be written: disk full, read-only, no permission."""

    exit_code = 3


class RegionError(InputError):
    """A part of an image that cannot be read; the rest of it can."""


class ResourceError(SeunetError):
    """Not enough memory or time for what was asked."""

    exit_code = 4


class ModelFileError(InputError):
    """A model file that is truncated, altered, foreign or does not fit."""


def unknown_name(what: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not in `known`, with the nearest known one as the remedy.

    >>> unknown_name("preset", "papr", ["paper", "geometric"])
    InputError("unknown preset 'papr'; did you mean 'paper'? (known: geometric, paper)")
    """
    names = sorted(known)
    return InputError(f"unknown {what} {name!r}{nearest_known(name, names)} (known: {', '.join(names)})")


def nearest_known(name: object, known: Iterable[str], likeness: float = 0.5) -> str:
    """`; did you mean 'paper'?`, or nothing where none of `known` is like `name`."""
    near = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=likeness)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_known(what: str, name: object, known: Collection[str]) -> None:
    """Refuse a name that is not in `known`."""
    if name not in known:
        raise unknown_name(what, name, known)
