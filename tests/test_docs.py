"""What the pages say is run, and their numbers are those of the committed results."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from benchmarks.docs.__main__ import BLOCKS, rendered

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
WITH_CODE = [page for page in PAGES if "```python" in (ROOT / page).read_text()]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", BLOCKS)
def test_the_tables_of_a_page_are_those_of_the_committed_results(page: str) -> None:
    assert rendered(page) == (ROOT / page).read_text(), f"{page} is stale: run python -m benchmarks.docs"


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
        if not target.startswith(("http:", "https:")):
            assert ((ROOT / page).parent / target).exists(), target


def test_the_readme_has_the_two_commands_of_a_newcomer_and_ci_runs_one_of_them() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
