"""What the pages say is run, and their numbers are those of the committed results."""

from __future__ import annotations

import doctest
import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from benchmarks.docs.__main__ import BLOCKS, rendered
from seunet.cli import app
from support.training import prepared_nuclei
from tools.docs_site.pages import page_paths, tracked

ROOT = Path(__file__).resolve().parents[1]
PAGES = [page for page in page_paths(tracked()) if page.endswith(".md")]
WITH_CODE = [page for page in PAGES if "```python" in (ROOT / page).read_text()]
TEXTS = {page: (ROOT / page).read_text() for page in page_paths(tracked())}
UsageError = typer.BadParameter.__bases__[0]
EXAMPLES = [path for path in sorted((ROOT / "src").rglob("*.py")) if ">>>" in path.read_text()]


def blocks(page: str, *languages: str) -> list[str]:
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)


def shell_lines(page: str) -> Iterator[str]:
    """The commands of a page's blocks, or of a tutorial's cells: whole lines, without prompt."""
    if page.endswith(".ipynb"):
        cells = [cell for cell in yaml.safe_load(TEXTS[page])["cells"] if cell["cell_type"] == "code"]
        yield from re.findall(r"^!(.*)", "\n".join("".join(cell["source"]) for cell in cells), re.MULTILINE)
        return
    for block in blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)", block, re.MULTILINE)
    for block in blocks(page, "sh", "bash"):
        yield from block.replace("\\\n", " ").splitlines()


def seunet_commands(page: str) -> Iterator[list[str]]:
    """The arguments of each `seunet …`, also where another program starts it."""
    for line in shell_lines(page):
        found = re.search(r"(?:^|[ /])seunet (?=[a-z-]+ )(.*)", line)
        if found and not line.startswith("#"):
            # $RESUME is empty or an option.
            yield shlex.split(found.group(1).replace("$RESUME", ""), comments=True)


def fault_of(arguments: list[str]) -> str:
    """What the command line says against them; it does nothing."""
    command: Any = get_command(app)
    while commands := getattr(command, "commands", None):
        if arguments[0] not in commands:
            return f"no such verb: {arguments[0]}"
        command, arguments = commands[arguments[0]], arguments[1:]
    try:
        command.make_context("seunet", arguments)
    except UsageError as error:
        return str(error.format_message())
    return ""


@pytest.mark.parametrize("page", [page for page in TEXTS if any(seunet_commands(page))])
def test_the_command_line_understands_every_command_of_a_page(page: str) -> None:
    written = [arguments for arguments in seunet_commands(page) if "…" not in arguments]
    assert {shlex.join(arguments): fault for arguments in written if (fault := fault_of(arguments))} == {}


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("segmend a -o b", "no such verb"),
        ("segment -o b", "Missing argument"),
        ("segment a -o b --mppp 1", "No such option"),
        ("segment a -o b --mpp x", "should be a valid number"),
        ("data prepare fold a b", "no such verb"),
    ],
)
def test_a_command_that_is_not_understood_is_noticed(command: str, fault: str) -> None:
    assert fault in fault_of(command.split())


def test_every_make_target_of_a_page_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name for text in TEXTS.values() for name in re.findall(r"(?:`|^)make ([a-z-]+)(?=`|$| )", text, re.MULTILINE)
    }
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", [page for page in PAGES if "```yaml" in TEXTS[page]])
def test_the_yaml_of_a_page_can_be_read(page: str) -> None:
    assert all(isinstance(yaml.safe_load(block), dict) for block in blocks(page, "yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_of_a_docstring_give_what_they_say(path: Path) -> None:
    module = import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = blocks(page, "python", "py")
    if any("prepared/monuseg" in block for block in code):
        (tmp_path / "prepared").mkdir()
        prepared_nuclei(tmp_path / "made").rename(tmp_path / "prepared" / "monuseg")
    for block in code:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", BLOCKS)
def test_the_tables_of_a_page_are_those_of_the_committed_results(page: str) -> None:
    assert rendered(page) == (ROOT / page).read_text(), f"{page} is stale: run python -m benchmarks.docs"


def github_anchor(heading: str) -> str:
    """The name that a repository page gives to a heading."""
    words = re.sub(r"\]\([^)]*\)", "]", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {github_anchor(heading) for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE)}


@pytest.mark.parametrize("page", TEXTS)
def test_the_links_of_a_page_lead_somewhere_on_a_repository_page(page: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", TEXTS[page]):
        if target.startswith(("http:", "https:")):
            continue
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def test_the_readme_has_the_two_commands_of_a_newcomer_and_ci_runs_one_of_them() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
