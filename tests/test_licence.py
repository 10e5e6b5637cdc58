"""The licence of the weights is where people look: README, metadata, `seunet info`, the log of `segment`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import seunet as package
from support.cli import seunet

ROOT = Path(__file__).parents[1]
LICENCE = "CC BY-NC-SA 4.0 (MoNuSeg): not for commercial use"


def test_the_metadata_of_the_wheel_name_both_licences() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "MIT AND CC-BY-NC-SA-4.0"
    assert project["license-files"] == ["LICENSE", "LICENSE-WEIGHTS.md"]
    assert "CC BY-NC-SA 4.0" in (ROOT / "LICENSE-WEIGHTS.md").read_text()


def test_readme_and_card_name_it() -> None:
    assert "CC BY-NC-SA 4.0: **not for\ncommercial use**" in (ROOT / "README.md").read_text()
    card = package.load("nuclei").card
    assert card is not None
    assert card.licence == LICENCE


def test_it_is_the_first_line_of_the_log_of_segment(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    ran = seunet("segment", tmp_path / "broken.png", "-o", tmp_path / "out", "--no-progress")
    assert ran.code == 2
    assert ran.err.splitlines()[0] == f"note: licence of nuclei: {LICENCE}"
