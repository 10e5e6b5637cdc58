"""Which files the site is made of, and the links between them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def tracked() -> list[str]:
    """Every file of the repository, by its path in it; those about to be added as well."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({path for path in listed if (ROOT / path).is_file()})


def page_paths(files: list[str]) -> list[str]:
    """The pages: Markdown and notebooks, but for those that belong to tests."""
    return [path for path in files if path.endswith((".md", ".ipynb")) and not path.startswith("tests/")]


def targets(page: str, text: str) -> Iterator[str]:
    """The paths in the repository that a page links to."""
    for link in LINK.findall(FENCE.sub("", text)):
        if not link.startswith(("http:", "https:", "mailto:")):
            yield normpath(str(PurePosixPath(page).parent / link))


def for_the_site(page: str, text: str) -> str:
    """The text with its links as the site needs them: a notebook is a page there, a folder has an index."""

    def on_site(link: re.Match[str]) -> str:
        found = link.group()
        if found.startswith(("http:", "https:")):
            return found
        if (ROOT / page).parent.joinpath(found).is_dir():
            return f"{found.rstrip('/')}/README.md"
        return re.sub(r"\.ipynb$", ".md", found)

    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    return "".join(part if part.startswith("```") else LINK.sub(on_site, part) for part in parts)


def folder_index(folder: str, files: list[str]) -> str:
    """A page for a folder that is linked to and has none: its files, pages by their titles."""
    inside = [path[len(folder) + 1 :] for path in files if path.startswith(f"{folder}/")]
    title = PurePosixPath(folder).name.capitalize() if folder.startswith("docs/") else folder
    return "\n".join([f"# {title}", "", *(f"- [{_title(folder, path)}]({path})" for path in inside), ""])


def _title(folder: str, path: str) -> str:
    found = re.match(r"# (.+)", (ROOT / folder / path).read_text()) if path.endswith(".md") else None
    return found.group(1) if found else path
