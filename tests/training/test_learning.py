"""What is there to learn is learnt, by every model, through `train` itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seunet as package
from seunet.training.config import checked_config
from seunet.training.loading import Sources
from seunet.training.new_model import make_model
from seunet.training.validation import ious_of, validation_counts
from support.cli import seunet
from support.datasets import write_touching
from support.training import ALONE, tiny_config, tiny_tree, train_alone

MODELS = {
    "seunet": [20, 40],
    "unet": [4, 8],
    "sesn": [10, 20],
    "disco": [10, 20],
    "njet": [4, 8],
}


@pytest.mark.parametrize("name", MODELS)
def test_in_eighty_steps_violet_discs_are_found_on_images_never_seen(name: str, nuclei: Path, tmp_path: Path) -> None:
    config = tiny_config(
        nuclei,
        model__name=name,
        model__widths=MODELS[name],
        data__augmentation={"flips": True},
        recipe__epochs=20,
        recipe__learning_rate=0.03,
        validation__every_epochs=5,
    )
    sources = Sources(config.data, config.seed)
    learnt_from = {sources.training.image_name(index) for index in range(len(sources.training))}
    assert not learnt_from & set(sources.held_out.names)
    before = ious_of(validation_counts(make_model(config, sources.manifest).eval(), sources.validation, ALONE, batch=8))
    assert before["p_ens"] < 0.4
    said: list[str] = []
    outcome = train_alone(config, tmp_path, say=said.append)
    assert outcome.best_iou is not None
    assert outcome.best_iou >= 0.9
    assert not any("nothing apart" in line for line in said)


def test_a_learnt_rim_parts_squares_that_touch_without_a_neck(tmp_path: Path) -> None:
    source = write_touching(tmp_path / "src")
    options = ("--window", 48, "--stride", 24, "--mpp", 0.5, "--workers", 1)
    assert seunet("data", "prepare", "folder", source, tmp_path / "set", *options).code == 0
    augmentation = {"flips": True, "turns": True, "crop_px": 32, "optics": {"blur": 0.1, "noise": 0.2}}
    recipe = {"epochs": 15, "batch": 4, "learning_rate": 0.03, "class_weights": [1.0, 1.0, 2.0]}
    tree = tiny_tree(tmp_path / "set", model={"name": "unet", "widths": [6, 12]}, recipe=recipe)
    tree["validation"] = {"every_epochs": 5, "batch": 9}
    tree["data"] |= {"hold_out": ["T0"], "rim_um": 0.75, "mpp": 0.5, "augmentation": augmentation}
    outcome = train_alone(checked_config(tree, "test"), tmp_path / "run")
    assert outcome.best_iou is not None
    assert outcome.best_iou > 0.85
    image = np.asarray(Image.open(source / "images" / "T0.png"))
    true = int(np.asarray(Image.open(source / "labels_inst" / "T0.png")).max())
    found = package.segment(image, package.load(tmp_path / "run" / "model"), mpp=0.5, scale="stated")
    assert found.rim is not None
    assert found.probabilities.shape[0] == 2
    assert len(found.objects) == pytest.approx(true, abs=2)
    assert len(replace(found, rim=None).objects) <= true / 2 + 2
