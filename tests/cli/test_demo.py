"""`seunet demo`, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.cli.demo import PAGE
from seunet.evaluation import Shown, agreement


def seunet(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seunet.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def test_the_demo_segments_its_image_at_four_sizes_told_nothing_and_shows_them_on_one_page(tmp_path: Path) -> None:
    done = seunet("demo", "-o", "shown", "--no-progress", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    table = done.stdout.split("\n\n")[0].splitlines()
    assert re.split(r"\s{2,}", table[0].strip()) == ["0.25 ×", "0.5 ×", "1 ×", "2 ×"]
    rows = {name: cells for name, *cells in (re.split(r"\s{2,}", line) for line in table[1:])}
    assert rows["pixels"][0] == "275 × 275"
    true, estimated = (np.array(rows[f"µm per pixel, {which}"], dtype=float) for which in ("true", "estimated"))
    assert true == pytest.approx([0.908, 0.454, 0.227, 0.1135], abs=1e-3)
    assert np.abs(np.log(estimated / true)).max() < np.log(1.25)
    assert done.stdout.endswith(f"shown/{PAGE}\nTo look around in it: seunet view shown\n")
    html = (tmp_path / "shown" / PAGE).read_text()
    assert html.count('src="data:image/png;base64,') == 1
    assert rows["objects"][2] in html
    assert "To look around in it: <code>seunet view shown</code>." in html
    assert "counts 319 cells" in html
    figures, rival = json.loads((tmp_path / "shown" / "demo.json").read_text())["systems"]
    assert [str(size["objects"]) for size in rival["sizes"]] == rows["objects, plain UNet, trained as long"]
    assert [str(size["objects"]) for size in figures["sizes"]] == rows["objects"]
    assert [f"{100 * size['iou_with_whole']:.1f} %" for size in figures["sizes"]] == rows["IoU with 1 ×"]
    assert [size["estimated_mpp"] for size in figures["sizes"]] == estimated.tolist()
    for name, count in zip(("quarter", "half", "whole", "double"), rows["objects"], strict=True):
        features = json.loads((tmp_path / "shown" / name / "objects.geojson").read_text())["features"]
        assert len(features) == int(count)


def test_agreement_is_the_iou_on_the_pixels_of_the_image_as_it_is() -> None:
    whole = np.zeros((4, 4), dtype=bool)
    whole[:2] = True
    half = np.array([[True, False], [False, False]])
    pixels = np.zeros((4, 4, 3), dtype=np.uint8)
    first, second = (Shown(1.0, 0.25, pixels, found, 1, None, 0.0) for found in (half, whole))
    assert agreement(first, second) == 0.5
    assert agreement(second, second) == 1


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


def test_the_help_has_an_example(tmp_path: Path) -> None:
    done = seunet("demo", "--help", folder=tmp_path)
    assert done.returncode == 0
    assert "Example: seunet demo -o out/demo" in done.stdout
