"""`seunet demo`, as a newcomer runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from seunet.cli.demo import PAGE, tissue_image
from seunet.errors import InputError
from seunet.evaluation import at_scales
from seunet.models import load


def seunet(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seunet.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def test_the_demo_writes_one_page_with_the_counts_of_three_magnifications(tmp_path: Path, disc_model: Path) -> None:
    done = seunet("demo", "-o", "shown", "-m", str(disc_model), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["0.5", "×", "1", "×", "2", "×"]
    assert lines[1].split("  ")[-1] == "1024 × 1024"
    counts = [int(count) for count in lines[2].split()[1:]]
    assert lines[-1] == f"shown/{PAGE}"
    html = (tmp_path / "shown" / PAGE).read_text()
    assert html.count('src="data:image/png;base64,') == 3
    for count, scale in zip(counts, ("0.5", "1", "2"), strict=True):
        assert f"{scale} ×: {count} objects" in html
    found = at_scales(tissue_image(), load(disc_model), (1.0,))[0]
    assert found.objects == counts[1]
    assert sum(found.heads) == pytest.approx(1)


def test_the_filters_are_drawn_and_explained(tmp_path: Path) -> None:
    done = seunet("plot", "filters", "-o", "filters.png", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "filters.png  (1920×2400 px)"
    assert any(line.startswith("  s = 0.5: σ 2 on the original and σ 1 on the rescaled image match") for line in lines)
    assert any(line.startswith("  s = 2: σ 1 on the original and σ 2 on the rescaled image match") for line in lines)
    with Image.open(tmp_path / "filters.png") as picture:
        assert picture.size == (1920, 2400)
    assert [path.name for path in tmp_path.iterdir()] == ["filters.png"]


def test_a_file_in_the_place_of_the_folder_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = seunet("demo", "-o", "taken", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "seunet: taken: is a file, but -o takes a folder; choose another name\n"
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = seunet("plot", "filters", "-o", "taken/below/f.png", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "seunet: taken/below/f.png: cannot be written (Not a directory); free space or choose another place\n"
    )


def test_a_missing_scikit_image_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.data", None)
    with pytest.raises(InputError) as error:
        tissue_image()
    assert str(error.value) == "the demo's image needs scikit-image; pip install 'seunet[demo]'"


def test_the_help_has_an_example(tmp_path: Path) -> None:
    done = seunet("demo", "--help", folder=tmp_path)
    assert done.returncode == 0
    assert "Example: seunet demo -o out/demo" in done.stdout
