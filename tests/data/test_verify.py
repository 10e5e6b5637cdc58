"""`seunet data verify`: every planted fault found, nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seunet.data.verification import verify
from support.cli import seunet
from support.datasets import write_monuseg
from support.faults import FAULTS, plant


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    source = write_monuseg(root / "src", train=3, test=1)
    assert seunet("data", "prepare", "monuseg", source, root / "set", "--window", 32).code == 0
    return root / "set"


@pytest.fixture
def folder(clean: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(clean, tmp_path / "a" / "set"))


def test_a_clean_set_has_no_findings(clean: Path) -> None:
    assert verify(clean) == []
    ran = seunet("data", "verify", clean)
    assert ran.code == 0
    assert ran.out == f"{clean}: 4 images, no faults\n"


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(folder: Path, name: str) -> None:
    plant(folder, name)
    lines = [str(finding) for finding in verify(folder)]
    assert any(FAULTS[name][1] in line for line in lines), lines


def test_many_faults_are_found_in_one_run_a_line_each(folder: Path) -> None:
    names = [
        "missing instances",
        "unknown code",
        "impossible mpp",
        "picture in two splits",
        "stray file",
        "unfinished",
    ]
    plant(folder, *names)
    ran = seunet("data", "verify", folder, "--no-progress")
    assert ran.code == 2
    for name in names:
        assert sum(FAULTS[name][1] in line for line in ran.out.splitlines()) == 1, name
    assert ran.err == f"seunet: {folder}: {len(ran.out.splitlines())} faults\n"


def test_an_unknown_mpp_is_a_note_and_no_fault(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["images"][0]["mpp"] = None
    path.write_text(json.dumps(manifest))
    ran = seunet("data", "verify", folder, "--no-progress")
    assert ran.code == 0
    assert ran.out.startswith("note: TCGA-00-1000-01Z-00-DX1: mpp unknown; pass --mpp when preparing if it is known\n")
