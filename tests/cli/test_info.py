"""`seunet info`: what we see in an image or a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seunet as package
from seunet.models import ModelCard
from support.cli import seunet
from support.datasets import he_pixels
from support.made_tissue import made_tissue
from support.tiffs import aperio_bytes, halves, write
from tests.support.scale_estimators import trusting_estimator


def slide(folder: Path) -> Path:
    return write(folder / "a.svs", aperio_bytes(halves(he_pixels(160, 0), 1)))


def test_an_image_is_described_in_text(tmp_path: Path) -> None:
    ran = seunet("info", slide(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "a.svs"
    assert "  format           aperio" in lines
    assert "  size             160 × 160 px" in lines
    assert "  level 1          80 × 80 px, 1 : 2" in lines
    assert "  µm per pixel     0.499 (metadata)" in lines
    assert "  objective power  20" in lines


def test_a_warning_is_shown_with_the_unknown_mpp(tmp_path: Path) -> None:
    Image.fromarray(he_pixels(40, 0)).save(tmp_path / "a.png", dpi=(72, 72))
    ran = seunet("info", tmp_path / "a.png")
    assert "  µm per pixel     unknown" in ran.out
    assert "  warning          resolution of 72.01 dpi: 352.7 µm per pixel is outside 0.05–20" in ran.out


def test_an_image_is_described_in_json(tmp_path: Path) -> None:
    ran = seunet("info", slide(tmp_path), "--json")
    found = json.loads(ran.out)
    assert found["mpp"] == {"x": 0.499, "y": 0.499, "source": "metadata"}
    assert found["levels"][1] == {"width_px": 80, "height_px": 80, "downsample": 2.0}
    assert found["bounds"] == {"x": 0, "y": 0, "width_px": 160, "height_px": 160}
    assert (found["name"], found["format"], found["warnings"]) == ("a.svs", "aperio", [])


def test_a_model_folder_is_described_with_its_card(tmp_path: Path) -> None:
    model = package.create_model("seunet", classes=3, widths=(10, 20), preset="geometric")
    model.card = ModelCard(mpp=0.25, class_names=("ground", "nucleus", "stroma"), licence="CC0")
    model.save_pretrained(tmp_path / "mine")
    (tmp_path / "mine" / "README.md").write_text("# Mine\n\nTrained on nothing.\n")
    ran = seunet("info", tmp_path / "mine", "--full")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("mine\n  model            seunet\n")
    assert "  classes          3\n" in ran.out
    assert "  mpp              0.25\n" in ran.out
    assert "  class_names      ground, nucleus, stroma\n" in ran.out
    assert "  schedule         geometric\n" in ran.out
    assert f"  parameters       {sum(p.numel() for p in model.parameters()):,}\n" in ran.out
    assert "    layer  1   0.700  0.990  1.400  1.980  2.800\n" in ran.out
    assert ran.out.endswith("# Mine\n\nTrained on nothing.\n")
    found = json.loads(seunet("info", tmp_path / "mine", "--json").out)
    np.testing.assert_allclose(found["sigmas"], model.sigmas().tolist())
    assert found["options"]["widths"] == [10, 20]
    assert found["readme"] == "# Mine\n\nTrained on nothing.\n"
    assert found["card"]["mpp"] == 0.25


def test_a_model_of_the_package_is_described_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package.create_model("seunet", widths=(10, 20)).save_pretrained(tmp_path / "cells")
    for module in ("seunet.models.built_in", "seunet.models.places"):
        monkeypatch.setattr(f"{module}.BUILT_IN", tmp_path)
    ran = seunet("info", "cells")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("cells\n")
    assert "\n  model            seunet\n" in ran.out


def test_the_shipped_model_is_described_on_one_screen_with_its_licence_first() -> None:
    ran = seunet("info", "nuclei")
    lines = ran.out.splitlines()
    assert lines[:2] == ["nuclei", "  licence          CC BY-NC-SA 4.0 (MoNuSeg): not for commercial use"]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert "  class_names      background, nucleus" in lines
    assert "  more             seunet info nuclei --full (the whole card) or --json" in lines


def test_a_model_whose_card_states_no_licence_says_so(tmp_path: Path) -> None:
    model = package.create_model("unet", widths=(4, 8))
    model.card = ModelCard(mpp=0.25)
    model.save_pretrained(tmp_path / "mine")
    assert "  licence          not stated; see its card\n" in seunet("info", tmp_path / "mine").out


def test_a_models_name_is_described_before_training() -> None:
    ran = seunet("info", "unet")
    assert ran.code == 0
    assert "  weights          not trained\n" in ran.out
    assert "σ" not in ran.out


def test_what_is_neither_is_one_line_and_exit_2(tmp_path: Path) -> None:
    for target, line in (
        ("nuclea", "nuclea: no such file, model folder or model; check the path (models: "),
        (write(tmp_path / "a.txt", b"hello"), "a.txt: not an image or slide of a known format"),
        (tmp_path, "config.json: cannot be read (No such file or directory)"),
    ):
        ran = seunet("info", target)
        assert (ran.code, ran.out) == (2, "")
        assert line in ran.err
        assert ran.err.count("\n") == 1


def test_the_scale_of_the_pixels_stands_beside_the_stated_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seunet.scale.of_slide.shipped_estimator", trusting_estimator)
    path = write(tmp_path / "a.svs", aperio_bytes(halves(made_tissue(320, 2.0), 1)))
    ran = seunet("info", path)
    assert "  µm per pixel     0.499 (metadata)\n  from the pixels  0." in ran.out
    assert "\n  warning          stated are 0.499 µm per pixel, the pixels look like 0." in ran.out
    found = json.loads(seunet("info", path, "--json").out)["scale_from_pixels"]
    assert found["known"]
    assert found["mpp_low"] < found["mpp"] < found["mpp_high"] < 0.499
    assert found["conflict"].startswith("stated are 0.499")


def test_where_the_pixels_do_not_say_it_is_said_why(tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 40, 3), 240, np.uint8)).save(tmp_path / "a.png")
    ran = seunet("info", tmp_path / "a.png")
    assert "  from the pixels  cannot be estimated: too small: 40×40 px; 128 per side are needed" in ran.out
