"""The front door of a room: names that are loaded on first use (PEP 562).

A room's `__init__` imports its public names `if TYPE_CHECKING`, where editors and type checkers see them; `door` reads
them there and imports the module of a name when somebody asks for it.  So names stand in one place, and `import seunet`
pulls in no heavy library.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

TYPE_CHECKING = False
"""True to type checkers, which know it by its name, as `typing` has it: that module takes a while to load."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def door(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package `room`."""

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(names_of(room))
        if name not in names_of(room):
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(names_of(room)[name]), name)

    return load, lambda: sorted({*vars(sys.modules[room]), *names_of(room)})


@cache
def names_of(room: str) -> dict[str, str]:
    """The names that a room offers, and the module of each."""
    import ast

    with open(str(sys.modules[room].__file__), encoding="utf-8") as source:
        top = ast.parse(source.read()).body
    imports = [node for block in top if isinstance(block, ast.If) for node in block.body]
    return {name.name: str(node.module) for node in imports if isinstance(node, ast.ImportFrom) for name in node.names}
