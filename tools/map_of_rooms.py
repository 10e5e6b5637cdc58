"""Draw the map of the rooms from the import contract and the imports themselves, so that it cannot lie.

    python tools/map_of_rooms.py        # writes docs/images/rooms.svg

Rows are the layers of [tool.importlinter] in pyproject.toml, from the top; a dot says that a room imports from the room
of that column.  All dots lie right of the diagonal: imports point downwards only.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "seunet"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

ROW, NAMES, CELL, TOP, MARGIN = 40, 480, 34, 112, 16


def layers() -> list[list[str]]:
    """The names of each layer of the contract, from the top."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(found for found in linter["contracts"] if found["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def files_of(name: str) -> list[Path]:
    """The modules of a room, or the one file beside the rooms."""
    single = PACKAGE / f"{name}.py"
    return [single] if single.exists() else sorted((PACKAGE / name).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports from when it runs; what only type checkers see is no import."""
    tree = ast.parse(path.read_text())
    for_checkers = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    unseen = {id(inner) for block in for_checkers for node in block.body for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seunet."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "seunet":
            yield from (name.name for name in node.names)


def purpose(name: str) -> str:
    """The first clause of what its door says."""
    path = PACKAGE / name / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else PACKAGE / f"{name}.py").read_text())) or ""
    return re.split(r"[:;]|\.( |$)", " ".join(text.split()), maxsplit=1)[0]


def text(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def row(place: int, names: list[str], below: list[list[str]]) -> Iterator[str]:
    """One layer: its box, what it is for, and a dot per layer that it imports from."""
    y, middle = TOP + place * ROW, TOP + place * ROW + ROW / 2
    yield f'<rect x="{MARGIN}" y="{y + 3}" width="{NAMES}" height="{ROW - 6}" rx="6" class="box"/>'
    yield text(MARGIN + 12, middle + 5, " · ".join(names), 'class="name"')
    if len(names) == 1:
        yield text(MARGIN + 140, middle + 5, purpose(names[0]), 'class="quiet"')
    used = {found for name in names for path in files_of(name) for found in imported(path)}
    for step, others in enumerate(below, start=1):
        x = MARGIN + NAMES + 24 + (place + step) * CELL
        yield f'<circle cx="{x}" cy="{middle:g}" r="{7 if used & set(others) else 1.5}" class="dot"/>'


def drawn() -> str:
    """The picture as SVG."""
    found = layers()
    width, height = MARGIN * 2 + NAMES + 24 + len(found) * CELL + 40, TOP + len(found) * ROW + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<style>text { font: 14px system-ui, sans-serif; fill: #1c1c1e } .name { font-weight: 600 }"
        " .quiet { fill: #55555c; font-size: 13px } .box { fill: #eef1f6; stroke: #c5ccd8 }"
        " .dot { fill: #3a5a8c }</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(MARGIN, 30, "The rooms of seunet, from top to bottom", 'class="name"'),
        text(MARGIN, 52, "A large dot: the room imports from the room of that column.", 'class="quiet"'),
        text(MARGIN, 70, "Imports point downwards only.", 'class="quiet"'),
    ]
    for place, names in enumerate(found):
        x = MARGIN + NAMES + 24 + place * CELL + 4
        name = names[0] + (" …" if len(names) > 1 else "")
        parts.append(text(x, TOP - 6, name, f'class="quiet" transform="rotate(-60 {x} {TOP - 6})"'))
        parts += row(place, names, found[place + 1 :])
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn())
    print(PICTURE.relative_to(ROOT))
