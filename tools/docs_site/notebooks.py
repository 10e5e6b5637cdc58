"""A notebook with its outputs as a page."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from html import escape
from pathlib import Path
from typing import Any

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PICTURES = {"image/png": "png", "image/jpeg": "jpg"}


def read_notebook(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell, which notebooks keep as one string or as lines."""
    return "".join(cell["source"])


def as_markdown(notebook: dict[str, Any], name: str, folder: Path) -> str:
    """The page; pictures are written beside it, into `folder`."""
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown":
            parts.append(source_of(cell))
            continue
        parts.append(f"```python\n{source_of(cell)}\n```")
        for index, output in enumerate(cell["outputs"]):
            parts.append(_shown(output, f"{name}-{number}-{index}", folder))
    parts.append(f"*This page is a notebook: [{name}.ipynb]({name}.ipynb) runs in Jupyter.*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(output: dict[str, Any], name: str, folder: Path) -> str:
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output["data"]
    for kind, suffix in PICTURES.items():
        if kind in data:
            (folder / f"{name}.{suffix}").write_bytes(b64decode("".join(data[kind])))
            return f"![What the cell above shows]({name}.{suffix})"
    if "text/html" in data:
        return f'<div class="output" markdown="0">{"".join(data["text/html"])}</div>'
    return _text("".join(data["text/plain"]))


def _text(printed: str) -> str:
    return f'<pre class="output"><code>{escape(ESCAPES.sub("", printed).rstrip())}</code></pre>'
