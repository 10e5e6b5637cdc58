"""The site of the documentation: it is built without a warning, and holds together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs_site.__main__ import build
from tools.docs_site.faults import faults
from tools.docs_site.notebooks import as_markdown
from tools.docs_site.pages import for_the_site
from tools.docs_site.reference import names_offered, rooms


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(folder) == ""
    return folder / "site"


def test_no_link_leads_nowhere_every_page_is_reached_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert faults(site) == []


def test_the_reference_has_every_name_of_every_door(site: Path) -> None:
    text = "".join(path.read_text() for path in (site / "docs" / "api").glob("*.html"))
    missing = [f"{room}.{name}" for room in rooms() for name in names_offered(room) if f"{room}.{name}" not in text]
    assert missing == []
    assert "Multiply every σ and its bounds" in text  # a method, from its docstring


def test_the_search_knows_tutorials_glossary_decisions_and_results(site: Path) -> None:
    index = (site / "search.json").read_text()
    for page in ("tutorials/the-layer", "glossary", "decisions/0001-rooms", "results/monuseg-cpu", "api/layers"):
        assert f"docs/{page}.html" in index


def test_a_tutorial_is_a_page_with_its_pictures_and_its_notebook_beside_it(site: Path) -> None:
    folder = site / "docs" / "tutorials"
    assert "found with σ times two" in (folder / "the-layer.html").read_text()
    assert (folder / "the-layer.ipynb").is_file()
    assert [path.suffix for path in folder.glob("the-layer-*")] == [".jpg"]


def _page(body: str) -> str:
    return f"<html><body>{body}</body></html>"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "index.html: gone.html leads nowhere"),
        ('<a href="other.html#gone">x</a>', "index.html: other.html#gone: other.html has no such place"),
        ('<script src="https://cdn.net/a.js"></script>', "index.html: https://cdn.net/a.js is loaded from elsewhere"),
        ("", "other.html: no page leads to it"),
    ],
)
def test_what_is_wrong_with_a_site_is_said(tmp_path: Path, body: str, fault: str) -> None:
    (tmp_path / "index.html").write_text(_page(body))
    (tmp_path / "other.html").write_text(_page('<h2 id="here">x</h2>'))
    assert fault in faults(tmp_path)


def test_a_link_to_a_folder_leads_to_its_index_a_notebook_is_a_page_and_code_stays_as_it_is() -> None:
    text = "[a](decisions) [b](tutorials/the-layer.ipynb#x) [c](https://x.org/a.ipynb)\n```\n[d](decisions)\n```\n"
    changed = (
        "[a](decisions/README.md) [b](tutorials/the-layer.md#x) [c](https://x.org/a.ipynb)\n```\n[d](decisions)\n```\n"
    )
    assert for_the_site("docs/page.md", text) == changed


def test_what_a_cell_printed_is_shown_as_text(tmp_path: Path) -> None:
    output = {"output_type": "stream", "text": ["a <b>\n"]}
    cell = {"cell_type": "code", "source": ["print('a <b>')"], "outputs": [output]}
    page = as_markdown({"cells": [cell]}, "name", tmp_path)
    assert "```python\nprint('a <b>')\n```" in page
    assert '<pre class="output"><code>a &lt;b&gt;</code></pre>' in page
