"""A plain loop that Numba is asked to compile when it is first called: loading Numba takes half a second."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any


def compiled(function: Callable[..., Any]) -> Any:
    """A plain loop, compiled on first use and kept on disk.

    Whether what is on disk is out of date is seen by the file of `function` alone: what it calls must stand there too.
    """
    return _CompiledLater(function)


class _CompiledLater:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *values: Any) -> Any:
        return self._compiled(*values)

    @cached_property
    def _compiled(self) -> Any:
        """Numba's function.  Those of its file take their places, because Numba looks for what it calls by name."""
        names: dict[str, Any] = self._function.__globals__
        for name, value in list(names.items()):
            if isinstance(value, _CompiledLater) and value._function.__globals__ is names:
                names[name] = value._by_numba
        return self._by_numba

    @cached_property
    def _by_numba(self) -> Any:
        from seunet.kernels.compiling.functions import kept_function

        return kept_function(self._function)
