"""What a model that goes on from a trained one has from it: network, weights, and of its card what still holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import seunet as package
from seunet.errors import InputError
from seunet.models import HeadCalibration, ModelCard, ScaleUNet
from support.cli import Ran, seunet
from support.datasets import class_map, write_lab
from support.training import tiny_config, tiny_file, train_alone
from tests.support.scale_estimators import saying

CALIBRATION = HeadCalibration(
    temperatures=(1,) * 5, prior=(0,) * 5, sharpness=1, prior_at_scale=(0,) * 5, sharpness_at_scale=1
)
CARD = ModelCard(
    mpp=0.26,
    class_names=("background", "Nucleus"),
    instances=True,
    scaled_filters_range=(0.9, 1.8),
    matched_head=2,
    blind_fusion="p_dist",
    calibration=CALIBRATION,
    trained_on="other images",
    licence="not for sale",
)
NO_MODEL = {"data__hold_out_every": 3, "recipe__epochs": 1, "model": {}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with all that `nuclei` has: an estimator, a matched head, a calibration, a licence."""
    torch.manual_seed(0)
    model = package.create_model("seunet", preset="geometric", widths=(5, 10), head_weights="uniform")
    with torch.no_grad():
        model.train()(torch.rand(2, 3, 32, 32))
    model.card, model.scale_estimator = CARD, saying(1.0)
    folder = tmp_path_factory.mktemp("start") / "discs"
    model.save_pretrained(folder)
    return folder


def tuned(data: Path, start: Path, run: Path, **changes: Any) -> tuple[ScaleUNet, list[str]]:
    """The model of a run of four steps from `start`, and what the run said."""
    said: list[str] = []
    config = tiny_config(data, **NO_MODEL | changes, start=str(start))
    train_alone(config, run, say=said.append)
    return package.load(run / "model"), said


def test_what_still_holds_is_inherited_and_said(nuclei: Path, trained: Path, tmp_path: Path) -> None:
    model, said = tuned(nuclei, trained, tmp_path / "run")
    assert model.config == package.load(trained).config
    assert model.card is not None
    assert model.scale_estimator is not None
    assert model.scale_estimator.sha256() == saying(1.0).sha256()
    kept = {
        name: getattr(CARD, name) for name in ("instances", "matched_head", "calibration", "blind_fusion", "licence")
    }
    assert {name: getattr(model.card, name) for name in kept} == kept
    assert model.card.scaled_filters_range == CARD.scaled_filters_range
    assert (model.card.mpp, model.card.class_names) == (0.25, ("other", "nucleus"))
    assert model.card.trained_on == "other images; then folder"
    assert said[1] == f"starts from {trained}: a seunet of {sum(p.numel() for p in model.parameters()):,} parameters"
    assert said[2] == (
        f"inherited from {trained}: scale estimator, objects counted one by one, matched head 2, blind fusion p_dist, "
        "calibration of the heads, licence: not for sale"
    )
    assert not any(line.startswith("not inherited") for line in said)


def test_derivatives_of_a_higher_order_are_added_and_change_nothing_at_first(
    nuclei: Path, trained: Path, tmp_path: Path
) -> None:
    start = package.load(trained)
    model, said = tuned(nuclei, trained, tmp_path / "run", model={"order": 2}, recipe__learning_rate=1e-12)
    assert model.config == start.config.model_copy(update={"order": 2})
    assert "derivatives up to order 2 in place of lower ones: the new ones begin at 0" in said
    before, after = (dict(each.named_parameters()) for each in (start, model))
    for name, value in before.items():
        if name.endswith("coefficients"):
            assert torch.allclose(after[name][[0, 1, 3]], value, atol=1e-6)
            assert after[name][[2, 4, 5]].abs().max() < 1e-6


def test_a_lower_order_than_that_of_the_start_is_not_taken(nuclei: Path, trained: Path, tmp_path: Path) -> None:
    model, said = tuned(nuclei, trained, tmp_path / "run", model={"order": 0})
    assert model.config == package.load(trained).config
    assert any("not used of `model`" in line and "order 0" in line for line in said)


def test_it_is_segmented_and_evaluated_by_the_same_estimator(nuclei: Path, trained: Path, tmp_path: Path) -> None:
    from seunet.evaluation import EvaluationSettings, evaluate

    model, _ = tuned(nuclei, trained, tmp_path / "run")
    assert model.scale_estimator is not None
    settings = EvaluationSettings(split="train", scales=(1.0,), ways=("blind", "estimated"))
    document = evaluate(model, nuclei, tmp_path / "out", settings)
    assert document["arguments"]["estimator"] == model.scale_estimator.sha256()
    model.scale_estimator = None
    with pytest.raises(InputError, match="this seunet has no scale estimator in its folder; pass --estimator nuclei"):
        evaluate(model, nuclei, tmp_path / "none", settings)


def test_what_was_measured_at_another_scale_is_not_inherited_and_that_is_said(
    nuclei: Path, trained: Path, tmp_path: Path
) -> None:
    start = Path(shutil.copytree(trained, tmp_path / "twice"))
    config = json.loads((start / "config.json").read_text())
    config["card"]["mpp"] = 0.5
    (start / "config.json").write_text(json.dumps(config))
    model, said = tuned(nuclei, start, tmp_path / "run")
    assert model.card is not None
    assert (model.card.matched_head, model.card.calibration, model.card.instances) == (None, None, True)
    why = "measured at 0.5 µm per pixel, the set has 0.25"
    assert f"not inherited from {start}: matched head 2 ({why}), calibration of the heads ({why})" in said


def test_where_heads_are_shown_their_own_magnifications_the_recipe_says_which_fits(
    nuclei: Path, trained: Path, tmp_path: Path
) -> None:
    own = {"data__augmentation": {"crop_px": 24, "scale_range": [0.25, 4.0]}, "recipe__batch": 5}
    model, said = tuned(nuclei, trained, tmp_path / "run", **own, recipe__first_head_scale=0.5)
    assert model.card is not None
    assert model.card.matched_head == 3
    assert ", matched head 3, " in said[2]


def test_other_classes_get_a_new_head_and_the_rest_of_the_weights(trained: Path, tmp_path: Path) -> None:
    source, codes = write_lab(tmp_path / "lab", patients=4, images_each=1), class_map(tmp_path / "map.csv")
    options = ("--class-map", codes, "--window", 24, "--min-annotated", 0, "--workers", 1, "--no-progress")
    assert seunet("data", "prepare", "folder", source, tmp_path / "set", *options).code == 0
    still = {"recipe__learning_rate": 1e-9, "recipe__frozen_norms": True, "data__augmentation": {}}
    model, said = tuned(tmp_path / "set", trained, tmp_path / "run", **still)
    assert "the head is made anew: classes other, tumour, stroma in place of background, Nucleus" in said
    assert next(line for line in said if line.startswith("not inherited")) == (
        f"not inherited from {trained}: scale estimator (the set states no µm per pixel: prepare it with --mpp), "
        "objects counted one by one (other classes), matched head 2 (the set states no µm per pixel), "
        "blind fusion p_dist (other classes), calibration of the heads (other classes)"
    )
    before, after = package.load(trained).state_dict(), model.state_dict()
    assert after["head.convolution.weight"].shape[0] == 3
    for name, value in before.items():
        if not name.startswith("head."):
            assert torch.allclose(after[name], value, atol=1e-5), name


def test_the_network_is_that_of_the_start_whatever_the_config_says(nuclei: Path, trained: Path, tmp_path: Path) -> None:
    config = tiny_file(tmp_path / "config.yaml", nuclei, recipe__epochs=1, model={"preset": "paper", "widths": [5, 15]})
    ran = command(config, tmp_path / "run", "--set", f"start={trained}")
    assert ran.code == 0, ran.err
    line = f"the network is that of {trained}; not used of `model`: widths [5, 15], schedule paper, truncation 2.0, "
    assert line in ran.out
    assert package.load(tmp_path / "run" / "model").config == package.load(trained).config
    ran = command(config, tmp_path / "other", "--set", f"start={trained}", "--set", "model.widhts=[5]")
    assert ran.code == 2
    assert "unknown option 'widhts'; did you mean 'widths'?" in ran.err


def test_a_run_goes_on_without_the_model_it_started_from(nuclei: Path, trained: Path, tmp_path: Path) -> None:
    start = Path(shutil.copytree(trained, tmp_path / "start"))
    config = tiny_config(nuclei, **NO_MODEL, start=str(start))
    train_alone(config, tmp_path / "unbroken")
    train_alone(config, tmp_path / "cut", 2)
    shutil.rmtree(start)
    assert train_alone(config, tmp_path / "cut", resume=True).finished
    for name in ("config.json", "model.safetensors", "scale.json", "scale.safetensors"):
        same = ((tmp_path / run / "model" / name).read_bytes() for run in ("unbroken", "cut"))
        assert len(set(same)) == 1, name


def command(config: Path, run: Path, *options: object) -> Ran:
    return seunet("train", config, "-o", run, "--no-progress", *options)
