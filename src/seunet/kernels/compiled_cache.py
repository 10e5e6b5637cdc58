"""Where compiled functions are kept between two runs; nothing that is wrong with that place stops a run.

Numba keeps them in `NUMBA_CACHE_DIR`, beside the source or in the user's cache folder: in the first that can be
written.  Where none can (no home, a read-only one, a package that another user installed), a private temporary folder
is used.  What cannot be written (a full disk) or read back (cut short, another user's) is compiled again.

Numba unpickles what it finds there, which can run code: hence a folder that nobody else can write to, or none.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numba
from numba.core.caching import FunctionCache, NullCache

from seunet.system import private_folder

FOLDER: Final = "seunet-compiled"
REMEDY: Final = "set NUMBA_CACHE_DIR to a folder that can be written"


class KeptFunction(FunctionCache):
    """Numba's files of one function, which may fail."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What is on disk; nothing where it cannot be read, and then room for what is compiled instead."""
        try:
            return super().load_overload(signature, context)
        except Exception:  # whatever a damaged pickle gives
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep it, or say once that it could not be."""
        try:
            super().save_overload(signature, data)
        except OSError as error:
            _warn_once(error.strerror or type(error).__name__)


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
