"""Stated, estimated or neither: which scale an analysis goes by, and what is said of it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import seunet
from seunet.errors import InputError
from seunet.images import ArrayImage, Mpp
from seunet.limits import MPP_RANGE
from seunet.models import HeadCalibration, ModelCard
from seunet.segmentation.scale_choice import known_scale, scale_facts, scale_lines
from support.cli import seunet as run
from support.made_tissue import made_tissue
from tests.support.networks import calm_model
from tests.support.scale_estimators import saying, trusting_estimator
from tests.support.tissue_model import dark_disc_model

PIXELS = made_tissue(200, 0.5)
STATED = Mpp(0.25, 0.25, "metadata")
HEADS = seunet.load("nuclei-2").scale_estimator.heads  # type: ignore[union-attr]


def model_saying(scale: float, **options: Any) -> Any:
    model: Any = calm_model("seunet", **{"widths": (5, 5, 5), **options})
    model.card = ModelCard(mpp=0.25, scaled_filters_range=(0.5, 2.0))
    model.scale_estimator = saying(scale)
    return model


def test_where_no_mpp_is_stated_the_estimate_is_used() -> None:
    found = known_scale(ArrayImage(PIXELS), model_saying(0.5))
    assert found.used == Mpp(0.5, 0.5, "estimated")
    assert (found.stated, found.conflict) == (None, None)
    assert scale_facts(found) == {
        "choice": "auto",
        "source": "estimated",
        "stated_mpp": None,
        "network_mpp": 0.5,
        "estimate": {
            "known": True,
            "relative_scale": 0.5,
            "mpp": 0.5,
            "mpp_low": 0.417,
            "mpp_high": 0.6,
            "reason": "as told",
        },
        "conflict": None,
    }
    (line,) = scale_lines(found, "why")
    assert line == "scale: no mpp stated; from the pixels 0.5 µm/px (90 %: 0.42–0.6; as told); why"


def test_a_stated_mpp_goes_before_the_estimate() -> None:
    found = known_scale(ArrayImage(PIXELS, STATED), model_saying(0.9))
    assert found.used == STATED
    assert found.conflict is None
    assert scale_lines(found, "why")[0].startswith("scale: 0.25 µm/px (metadata); from the pixels 0.28 µm/px")


def test_a_stated_mpp_that_is_not_what_the_pixels_look_like_is_used_with_a_warning() -> None:
    found = known_scale(ArrayImage(PIXELS, STATED), model_saying(0.5))
    assert found.used == STATED
    assert found.conflict == ("stated are 0.25 µm per pixel, the pixels look like 0.5 (0.42–0.6), 2 times as much")
    other = known_scale(ArrayImage(PIXELS, STATED), model_saying(2.0)).conflict
    assert other == "stated are 0.25 µm per pixel, the pixels look like 0.12 (0.1–0.15), 1/2 of it"
    assert known_scale(ArrayImage(PIXELS, STATED), model_saying(0.7)).conflict is None  # outside, but × 1.4 only


@pytest.mark.parametrize(
    ("scale", "used_mpp"),
    [(0.5, 0.417), (2.0, 0.15), (0.7, 0.298), (1.15, 0.25)],
    ids=["up to the interval", "down to it", "up, hardly", "as it is within it"],
)
def test_where_the_network_has_looked_it_goes_by_a_stated_mpp_as_far_as_the_pixels_allow(
    scale: float, used_mpp: float
) -> None:
    model = model_saying(scale)
    model.scale_estimator = replace(saying(scale), heads=HEADS)
    found = known_scale(ArrayImage(PIXELS, STATED), model)
    assert found.used == Mpp(used_mpp, used_mpp, "metadata")
    assert found.mpp == 0.25  # of lengths and areas
    assert scale_facts(found)["network_mpp"] == used_mpp
    assert known_scale(ArrayImage(PIXELS, STATED), model, "stated").used == STATED
    moved = (
        f"the network goes by {used_mpp}, lengths and areas by what is stated; `--scale stated` has the network obey it"
        " too"
    )
    lines = [*scale_lines(found, "why")[1:], *([found.conflict] if found.conflict else [])]
    assert [line[-len(moved) :] for line in lines] == ([] if used_mpp == 0.25 else [moved])  # once


def test_a_stated_mpp_stays_where_nothing_can_be_estimated() -> None:
    model = model_saying(0.0)
    model.scale_estimator = replace(saying(0.0), heads=HEADS)
    assert known_scale(ArrayImage(PIXELS, STATED), model).used == STATED


@pytest.mark.parametrize(("choice", "used"), [("stated", STATED), ("native", None)])
def test_stated_and_native_do_not_ask_the_pixels(choice: Any, used: Mpp | None) -> None:
    found = known_scale(ArrayImage(PIXELS, STATED), model_saying(0.5), choice)
    assert (found.used, found.estimate, found.conflict) == (used, None, None)
    assert scale_lines(found, "why") == ()
    assert known_scale(ArrayImage(PIXELS), model_saying(0.5), choice).used is None


def test_what_cannot_be_estimated_is_left_to_the_heads() -> None:
    unsure = known_scale(ArrayImage(PIXELS), model_saying(0.0))
    assert unsure.used is None
    assert scale_facts(unsure)["estimate"]["reason"] == "no tissue"
    assert "cannot be estimated: no tissue" in scale_lines(unsure, "why")[0]
    without = model_saying(1.0)
    without.scale_estimator = None
    assert known_scale(ArrayImage(PIXELS), without).estimate is None
    without.scale_estimator, without.card = saying(1.0), None
    found = known_scale(ArrayImage(PIXELS), without)
    assert found.used is None
    assert found.estimate is not None
    assert found.estimate.reason == "the model does not say at how many µm per pixel it learnt"


def test_an_estimate_beyond_microscopes_is_not_an_error() -> None:
    used = known_scale(ArrayImage(PIXELS), model_saying(5.6)).used
    assert used is not None
    assert used.mean == MPP_RANGE[0]


def test_an_array_is_segmented_at_the_estimated_scale_as_if_it_was_stated() -> None:
    model = model_saying(0.8)
    auto, stated = seunet.segment(PIXELS, model), seunet.segment(PIXELS, model, mpp=0.312, scale="stated")
    assert np.array_equal(auto.probabilities, stated.probabilities)
    before = seunet.segment(PIXELS, model, mpp=0.312, scale="told")  # type: ignore[arg-type]
    assert (before.scale.choice, np.array_equal(before.probabilities, stated.probabilities)) == ("stated", True)
    assert (auto.estimated_mpp, stated.estimated_mpp) == (0.25 / 0.8, None)
    assert auto.scale.used == Mpp(0.312, 0.312, "estimated")  # three digits: no last bit decides
    native = seunet.segment(PIXELS, model, mpp=0.312, scale="native")
    assert not np.array_equal(auto.probabilities, native.probabilities)
    assert native.relative_scale is None
    with pytest.raises(InputError, match="unknown scale 'blind'"):
        seunet.segment(PIXELS, model, scale="blind")  # type: ignore[arg-type]


def test_calibrated_heads_are_those_of_the_known_or_unknown_scale() -> None:
    model = model_saying(0.0, scales=3, widths=(6, 6, 6))
    none, only = (-99.0, -99.0, 0.0), (0.0, -99.0, -99.0)
    calibration = HeadCalibration(
        temperatures=(1, 1, 1), prior=none, sharpness=0, prior_at_scale=only, sharpness_at_scale=0
    )
    model.card = model.card.model_copy(update={"calibration": calibration})
    blind = seunet.segment(PIXELS, model, fusion="calibrated")
    known = seunet.segment(PIXELS, model, mpp=0.25, fusion="calibrated")
    for found, head in ((blind, 2), (known, 0)):
        alone = seunet.segment(PIXELS, model.only_scale(head), scale="native")
        assert np.allclose(found.probabilities, alone.probabilities, atol=1e-6)
    model.card = None
    with pytest.raises(InputError, match="has no calibration of its heads; use mean, p_dist, p_ens"):
        seunet.segment(PIXELS, model, fusion="calibrated")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with an estimator that takes made tissue for tissue."""
    place = dark_disc_model(tmp_path_factory.mktemp("model") / "discs")
    model = seunet.load(place)
    model.scale_estimator = trusting_estimator()
    model.save_pretrained(place)
    return place


def test_a_run_says_where_its_scale_is_from_and_leaves_areas_in_um2_empty(folder: Path, tmp_path: Path) -> None:
    pixels = made_tissue(300, 0.5)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    ran = run("segment", tmp_path / "a.png", "-o", tmp_path / "out", "-m", folder, "--no-progress")
    assert ran.code == 0
    assert ran.err.startswith("note: a.png: scale: no mpp stated; from the pixels 0.")
    assert len(ran.err.splitlines()) == 1
    document = json.loads((tmp_path / "out" / "a" / "run.json").read_text())
    expected = seunet.estimate_scale(pixels, estimator=trusting_estimator())
    assert document["scale"]["source"] == "estimated"
    assert document["scale"]["estimate"]["mpp"] == float(f"{expected.mpp:.3g}")
    assert document["magnification"]["relative_scale"] == 0.25 / document["scale"]["estimate"]["mpp"]
    assert document["clock"]["seconds_by_part"]["scale"] >= 0
    assert document["model_given"] == str(folder)
    assert document["versions"]["torch"] == torch.__version__
    assert datetime.fromisoformat(document["clock"]["ended"]).tzinfo is not None
    (row,) = csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines())
    assert (row["mpp"], row["all_um2"], row["nucleus:area_um2"]) == ("", "", "")
    assert (row["scale_source"], row["estimated_mpp"], row["mpp_conflict"]) == ("estimated", f"{expected.mpp:.3g}", "")


def test_a_wrong_mpp_is_warned_of_in_the_log_the_record_and_the_summary(folder: Path, tmp_path: Path) -> None:
    Image.fromarray(made_tissue(300, 0.5)).save(tmp_path / "a.png")
    ran = run("segment", tmp_path / "a.png", "-o", tmp_path / "out", "-m", folder, "--mpp", "0.08", "--no-progress")
    assert "note: a.png: warning: stated are 0.08 µm per pixel, the pixels look like 0." in ran.err
    document = json.loads((tmp_path / "out" / "a" / "run.json").read_text())
    assert document["scale"]["source"] == "user"
    assert document["scale"]["conflict"].startswith("stated are 0.08 µm per pixel")
    assert document["notes"] == [f"warning: {document['scale']['conflict']}"]
    (row,) = csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines())
    assert (row["mpp"], row["scale_source"], row["mpp_conflict"]) == ("0.08", "user", "yes")
    quiet = run("segment", tmp_path / "a.png", "-o", tmp_path / "t", "-m", folder, "--scale", "stated", "--no-progress")
    assert (quiet.code, quiet.err) == (0, "")
