"""What is installed: each version in one way in constraints, lock file and page, and a hash for each file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)==([^\s\\]+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


LOCK = (ROOT / "requirements.lock").read_text()
CONSTRAINTS = pins((ROOT / "constraints.txt").read_text())
"""Some of them are for other Pythons or systems alone."""


def test_the_lock_file_has_the_versions_that_make_install_takes() -> None:
    locked = pins(LOCK)
    assert {name: CONSTRAINTS.get(name) for name in locked} == locked


def test_every_package_of_the_lock_file_has_hashes() -> None:
    entries = re.split(r"\n(?=[a-z0-9])", LOCK)[1:]
    assert len(entries) == len(pins(LOCK)) > 100
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_all_that_we_ask_for_is_locked_but_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {canonicalize_name(Requirement(text).name) for part in asked for text in part} - {"seunet"}
    assert names - set(pins(LOCK)) == {"torch"}


def test_the_page_lists_each_with_its_version_and_licence() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| \w+ \| ([\w.-]+) \| (\S+) \| (.+) \|$", page, re.MULTILINE)
    rows = [row for row in rows if row[0] != "package"]
    assert {name: version for name, version, _ in rows} == pins(LOCK) | {"torch": CONSTRAINTS["torch"]}
    assert all(licence.strip() for _, _, licence in rows)
