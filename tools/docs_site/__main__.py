"""`python -m tools.docs_site`: gather the pages, build the site, check it.  A warning is an error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

from tools.docs_site.faults import faults
from tools.docs_site.notebooks import as_markdown, read_notebook
from tools.docs_site.pages import ROOT, folder_index, for_the_site, page_paths, targets, tracked
from tools.docs_site.reference import reference_pages

CONFIG = "mkdocs.yml"


def gather(destination: Path) -> None:
    """Every page, and every file that a page links to, below `destination` as in the repository."""
    files = tracked()
    texts = {page: _text(page, destination) for page in page_paths(files)}
    texts |= reference_pages()
    linked = {target for page, text in texts.items() for target in targets(page, text)}
    for folder in sorted(target for target in linked if (ROOT / target).is_dir()):
        texts.setdefault(f"{folder}/README.md", folder_index(folder, files))
        linked |= set(targets(f"{folder}/README.md", texts[f"{folder}/README.md"]))
    looks = {path for path in files if path.startswith("docs/site/")}
    for target in sorted(linked | looks | {page for page in texts if page.endswith(".ipynb")}):
        if (ROOT / target).is_file() and not target.endswith(".md"):
            _place(destination / target).write_bytes((ROOT / target).read_bytes())
    for page, text in texts.items():
        name = PurePosixPath(page).with_suffix(".md")
        _place(destination / name).write_text(for_the_site(page, text), encoding="utf-8")


def _text(page: str, destination: Path) -> str:
    path = ROOT / page
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    return as_markdown(read_notebook(path), path.stem, _place(destination / page).parent)


def _place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def build(folder: Path) -> str:
    """Make `folder`/site; what the generator printed, if it did not end well."""
    for name in ("pages", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    gather(folder / "pages")
    shutil.copyfile(ROOT / CONFIG, folder / CONFIG)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(command, cwd=folder, env=here, capture_output=True, text=True)
    return "" if ran.returncode == 0 else _without_traceback(ran.stdout + ran.stderr)


def _without_traceback(printed: str) -> str:
    """What the generator says, without its colours and the lines of its own code."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.startswith("  ")) or "no site was made"


def main(folder: Path) -> int:
    """The exit code: 0 without faults."""
    if printed := build(folder):
        print(printed)
        return 1
    found = faults(folder / "site")
    print(*found, f"{folder / 'site' / 'index.html'}: {len(found)} faults", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")))
