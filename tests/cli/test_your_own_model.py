"""docs/your-own-model.md: the five commands, one after the other, on a small made set."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import seunet as package
from support.cli import seunet
from support.datasets import he_pixels, write_image

PAGE = (Path(__file__).parents[2] / "docs" / "your-own-model.md").read_text()
SHORTER = {
    "train": ("--set", "recipe.steps=2", "--set", "validation.times=1", "--set", "machine.tensorboard=false"),
    "evaluate": ("--no-panels",),
}
"""What is added to the commands of the page, so that they take seconds."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten images of violet discs, two of each of five patients, with numbered discs as masks; the current folder."""
    for number in range(10):
        pixels = he_pixels(200, number)
        columns = np.arange(200, dtype=np.uint16) // 20 + 1
        mask = np.where(pixels[..., 0] < 168, columns[None], 0).astype(np.uint16)
        name = f"train_{number // 2 + 3}_{number % 2:03d}"
        write_image(tmp_path / "lab" / "images" / f"{name}.jpg", pixels)
        write_image(tmp_path / "lab" / "masks" / f"{name}.png", mask)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 100


def test_the_five_commands_of_the_page_run_and_say_what_the_page_shows(lab: Path) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^\$ seunet (.*)$", PAGE, flags=re.MULTILINE)]
    assert [command[0] for command in commands] == ["data", "data", "train", "evaluate", "segment"]
    printed = ""
    for command in commands:
        ran = seunet(*command, *SHORTER.get(command[0], ()), "--no-progress")
        assert ran.code == 0, (command, ran.err)
        printed += ran.out
    shown = [
        "decision: windows of 200 px in place of 512, which many images do not fill\n",
        "prepared/lab: 10 images, no faults\n",
        "learns from 6 images of 3 patients; held out: 2 images of ",
        "starts from nuclei: a seunet of 366,764 parameters\n",
        "inherited from nuclei: scale estimator, matched head 2, blind fusion p_dist, calibration of the heads, ",
        ": runs/lab/model\n",
        "out/lab/evaluation.md\n",
        "out/segmented/train_7_000: ",
    ]
    for line in shown:
        assert line in printed, line
        assert re.sub(r"[0-9]+", "", line) in re.sub(r"[0-9]+", "", PAGE), line
    model = package.load("runs/lab/model")
    assert model.card is not None
    assert (model.card.mpp, model.card.instances, model.card.matched_head) == (0.275, True, 2)
    assert model.scale_estimator is not None
    written = {path.name for path in (lab / "out" / "segmented" / "train_7_000").iterdir()}
    assert {"counts.csv", "labels.tif", "objects.geojson", "overlay.png"} <= written
