"""The tutorials: their code runs, and what they show is what it printed."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from support.cli import seunet
from tools.run_tutorials import code_hash

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
TUTORIALS = sorted(FOLDER.glob("*.ipynb"))
LARGEST_BYTES = 500 * 1024


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def shown(cell: dict[str, Any]) -> str:
    """The text below a cell, among it the errors that a tutorial means to show."""
    return "".join(line for output in cell["outputs"] for line in output.get("text", ()))


def run_cell(cell: dict[str, Any], names: dict[str, Any]) -> None:
    """As Jupyter does, but for the command line, which runs in this process; what the last line gives is shown."""

    def command(line: str) -> None:
        program, *arguments = shlex.split(line)
        assert program == "seunet"
        ran = seunet(*arguments)
        assert ran.code == 0 or ran.err.strip().splitlines()[-1] in shown(cell), (line, ran.err)

    code = re.sub(
        r"^!(.*)$", lambda found: f"_command({found.group(1)!r})", "".join(cell["source"]), flags=re.MULTILINE
    )
    tree, value = ast.parse(code), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names["_command"] = command
    exec(compile(tree, "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    for form in ("_repr_png_", "_repr_html_"):
        assert getattr(value, form, lambda: "nothing to show")()


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_cells_of_a_tutorial_run_one_after_the_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    names: dict[str, Any] = {}
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "code":
            run_cell(cell, names)
    plt.close("all")


def test_there_are_the_five_tutorials() -> None:
    names = ["a-model-for-qupath", "my-own-data", "reproduce-the-paper", "segment-my-slides", "the-layer"]
    assert [path.stem for path in TUTORIALS] == names
    listed = re.findall(r"\]\((\S+)\.ipynb\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == names


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_shows_what_its_code_printed_without_errors_or_places_of_a_machine(path: Path) -> None:
    notebook = read(path)
    assert notebook["metadata"]["ran"] == code_hash(notebook), "stale outputs: run make tutorials"
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert any("image/png" in found or "image/jpeg" in found for found in (each.get("data", {}) for each in outputs))
    assert not [each for each in outputs if each["output_type"] == "error"]
    assert not re.search(r"(?<![\w.])/(tmp|root|home|usr|opt)/", path.read_text())
    assert path.stat().st_size < LARGEST_BYTES
