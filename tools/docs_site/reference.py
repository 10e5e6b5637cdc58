"""The reference of the Python API: one page per room, with the names that its door offers."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import seunet
from seunet.doors import names_of

FOLDER = "docs/api"
INTRODUCTION = """# Python reference

What each room of the package offers at its door, from the docstrings. Most people need the first page only.

"""


def rooms() -> list[str]:
    """The packages with a door, the outermost first."""
    found = [room.name for room in walk_packages(seunet.__path__, "seunet.") if room.ispkg]
    return [room for room in ["seunet", *sorted(found)] if names_offered(room)]


def names_offered(room: str) -> list[str]:
    import_module(room)
    return sorted(names_of(room))


def page_name(room: str) -> str:
    return "top" if room == "seunet" else room.removeprefix("seunet.").replace(".", "-")


def reference_pages() -> dict[str, str]:
    """The text of every page by its path."""
    pages = {f"{FOLDER}/{page_name(room)}.md": _page(room) for room in rooms()}
    contents = [f"- [`{room}`]({page_name(room)}.md): {_purpose(room)}" for room in rooms()]
    return {f"{FOLDER}/README.md": INTRODUCTION + "\n".join(contents) + "\n", **pages}


def _page(room: str) -> str:
    names = "\n".join(f"::: {room}.{name}" for name in names_offered(room))
    return f"# {room}\n\n{_said_at_the_door(room)}\n\n{names}\n"


def _said_at_the_door(room: str) -> str:
    return (import_module(room).__doc__ or "").strip()


def _purpose(room: str) -> str:
    return " ".join(_said_at_the_door(room).split("\n\n")[0].removeprefix("seunet: ").split())
