"""Rooms are entered by their doors: what a door offers is there, and costs nothing before it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import seunet
from seunet.doors import names_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "seunet"
ROOMS = sorted(
    ".".join(path.parent.relative_to(PACKAGE.parent).parts)
    for path in PACKAGE.rglob("__init__.py")
    if path.parent not in (PACKAGE, PACKAGE / "pretrained")
)


class Import(NamedTuple):
    """`from module import name` in a file or a page."""

    place: str
    module: str
    name: str


def python_of(path: Path) -> Iterator[str]:
    text = path.read_text()
    yield from re.findall(r"```python\n(.*?)```", text, re.DOTALL) if path.suffix == ".md" else [text]


def imports(path: Path) -> Iterator[Import]:
    for code in python_of(path):
        for node in ast.walk(ast.parse(code)):
            place = path.relative_to(ROOT).as_posix()
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "seunet":
                yield from (Import(place, str(node.module), name.name) for name in node.names)
            if isinstance(node, ast.Import):
                yield from (Import(place, name.name, "") for name in node.names if name.name.startswith("seunet."))


def room_of(module: str) -> str:
    """The innermost room that a module lies in, or is; "" for what lies beside the rooms."""
    return max((room for room in ROOMS if f"{module}.".startswith(f"{room}.")), key=len, default="")


FROM_OUTSIDE = [
    found
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(path for folder in ("docs", "benchmarks", "support", "tests") for path in (ROOT / folder).rglob("*.*")),
    ]
    if path.suffix in (".py", ".md") and path.exists()
    for found in imports(path)
    if room_of(found.module)
]


def lies_in(place: str, room: str) -> bool:
    """Whether this is a test of the room, which may look inside."""
    return place.startswith(f"tests/{room.split('.')[1]}/")


def test_pages_benchmarks_and_tests_of_other_rooms_enter_a_room_by_its_door() -> None:
    inside = [
        f"{place}: {module}"
        for place, module, _ in FROM_OUTSIDE
        if module != room_of(module) and not lies_in(place, room_of(module))
    ]
    assert not inside, "offer the name in the room's __init__ and import it from there"


def test_what_is_asked_for_at_a_door_is_offered_there() -> None:
    missing = [
        f"{place}: {module}.{name}"
        for place, module, name in FROM_OUTSIDE
        if module == room_of(module) and name and name not in names_of_room(module) and not is_module(module, name)
    ]
    assert not missing


def names_of_room(room: str) -> dict[str, str]:
    import_module(room)
    return names_of(room)


def is_module(room: str, name: str) -> bool:
    path = PACKAGE.parent.joinpath(*room.split("."), name)
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize("room", ["seunet", *ROOMS])
def test_a_door_offers_names_of_its_own_modules_and_none_that_a_module_would_hide(room: str) -> None:
    """A module is set as an attribute of its package when it is imported, and would win."""
    for name, module in names_of_room(room).items():
        assert module.startswith(f"{room}.")
        assert not is_module(room, name), f"{room}.{name} is a module as well: rename one of them"
        assert getattr(import_module(room), name) is getattr(import_module(module), name)
        assert name in dir(import_module(room))


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_says_what_the_room_may_import_and_where_to_begin(room: str) -> None:
    text = import_module(room).__doc__ or ""
    assert "May import: " in text
    begin = re.findall(r"`(\w+\.py)`", text.split("Begin with", 1)[1])
    assert begin
    assert all((PACKAGE.parent.joinpath(*room.split(".")) / file).exists() for file in begin)


def test_a_name_that_is_not_offered_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match=r"^module 'seunet' has no attribute 'nothing'$"):
        seunet.nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from 'seunet.maths'"):
        exec("from seunet.maths import nothing")  # noqa: S102


def test_everything_offered_comes_with_a_star() -> None:
    names: dict[str, object] = {}
    exec("from seunet.layers import *", names)  # noqa: S102
    assert set(names_of_room("seunet.layers")) <= set(names)


def test_all_doors_together_load_no_library() -> None:
    code = f"import sys, {', '.join(ROOMS)}; print({{'torch', 'numpy', 'numba', 'cv2', 'pydantic'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_no_folder_has_more_than_sixteen_modules() -> None:
    """What is more than a newcomer can hold in mind is two rooms, or a room with an inner one."""
    counts = {folder: len([*folder.glob("*.py")]) for folder in [PACKAGE, *PACKAGE.rglob("*/")]}
    assert not {folder.name: count - 1 for folder, count in counts.items() if count - 1 > 16}
