"""Licences of everything that requirements.lock installs, and torch: the table of docs/dependencies.md.

    python tools/licences.py    # rewrites the block <!-- licences --> of docs/dependencies.md

Read from the metadata of the installed packages, so the environment must be that of `make install`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
BLOCK = re.compile(r"(<!-- licences -->\n).*?(<!-- /licences -->)", re.DOTALL)
PARTS = ("core", "train", "cluster", "cloud", "viewer", "export", "dev")
"""From what everybody installs to what the tests need: a package is listed under the first that needs it."""
UNSAID = {"bioimageio-spec": "MIT"}
"""Packages whose metadata name no licence, and what the file in them says."""


def locked() -> dict[str, str]:
    """Versions by name, torch among them."""
    torch = re.findall(r"^torch==.*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pins = re.findall(r"^([\w.-]+)==(\S+)", "\n".join([(ROOT / "requirements.lock").read_text(), *torch]), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def licence(package: Distribution) -> str:
    """An SPDX expression if it has one, else its classifiers, else the first words of its licence."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = [each for each in about.get_all("Classifier") or [] if each.startswith("License ::")]
    names = [each.split(" :: ")[-1] for each in classifiers if each != "License :: OSI Approved"]
    text = (about.get("License") or "").strip().splitlines()
    return " AND ".join(names) or (text[0][:60] if text else "") or UNSAID.get(canonicalize_name(package.name), "")


def needed_by(requirements: list[str]) -> Iterator[str]:
    """The packages that these need, and those that they need in turn."""
    waiting = [Requirement(text) for text in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        yield name
        for each in {"", *wanted.extras}:
            if (name, each) in seen:
                continue
            seen.add((name, each))
            try:
                more = [Requirement(text) for text in distribution(name).requires or []]
            except PackageNotFoundError:  # for another system or Python
                continue
            waiting += [one for one in more if one.marker is None or one.marker.evaluate({"extra": each})]


def parts() -> dict[str, str]:
    """Which part of ours needs a package first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"core": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, str] = {}
    for part in PARTS:
        own = [text for text in wanted[part] if not text.startswith("seunet")]
        for name in needed_by(own):
            found.setdefault(name, part)
    return found


def table() -> str:
    """Every package once, by part and name."""
    origin, rows, missing = parts(), [], []
    for name, version in locked().items():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        if package.version.split("+")[0] != version:
            missing.append(f"{name}=={version} (there is {package.version})")
        rows.append((PARTS.index(origin.get(name, "dev")), name, version, licence(package)))
    if missing:
        raise SystemExit(f"not installed as requirements.lock has it: {', '.join(missing)}; run make install")
    unknown = [name for _, name, _, licence in rows if not licence]
    if unknown:
        raise SystemExit(f"no licence is named by {', '.join(unknown)}; look into the package and add it to UNSAID")
    lines = ["| needed by | package | version | licence |", "|---|---|---|---|"]
    lines += [f"| {PARTS[part]} | {name} | {version} | {text} |" for part, name, version, text in sorted(rows)]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda block: f"{block[1]}{table()}\n{block[2]}", PAGE.read_text()))
