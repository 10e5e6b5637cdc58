"""Run the tutorials in Jupyter and keep what they print and draw, so that a reader sees it without running them.

    python tools/run_tutorials.py                      # all of docs/tutorials; `make tutorials`
    python tools/run_tutorials.py docs/tutorials/the-layer.ipynb

Each runs in a new folder that is thrown away.  Large pictures are kept as JPEG.  `metadata.ran` has a hash of the code,
by which a test sees outputs of older code.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import sysconfig
from base64 import b64decode, b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
LARGE_PNG = 80_000
"""Characters of base64."""
WIDEST_PX = 900


def code_hash(notebook: dict[str, Any]) -> str:
    """Of all code cells, in order."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(cells).encode()).hexdigest()[:16]


def lighter(data: dict[str, Any]) -> None:
    """A large PNG becomes a JPEG, in place."""
    png = data.get("image/png", "")
    if len(png) > LARGE_PNG:
        picture = Image.open(io.BytesIO(b64decode(png))).convert("RGB")
        picture.thumbnail((WIDEST_PX, WIDEST_PX))
        encoded = io.BytesIO()
        picture.save(encoded, "JPEG", quality=85)
        del data["image/png"]
        data["image/jpeg"] = b64encode(encoded.getvalue()).decode()
    elif png:
        data.pop("image/jpeg", None)
    if png:
        data.pop("text/plain", None)
        data["text/plain"] = "a picture"


def run(path: Path) -> None:
    """Run one notebook and write it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        # `!seunet` is the command of this Python's environment.
        os.environ["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
        NotebookClient(
            notebook, timeout=1800, coalesce_streams=True, resources={"metadata": {"path": folder}}
        ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "data" in output:
                lighter(output["data"])
            if "text" in output:
                output["text"] = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r(?=\n)", "", output["text"])
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    notebook.metadata["ran"] = code_hash(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(TUTORIALS.glob("*.ipynb")):
        print(name)
        run(Path(name))
