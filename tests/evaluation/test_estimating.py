"""The way `estimated`: the whole image is asked, and the answer is used as `segment` uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seunet.data import WindowDataset
from seunet.errors import InputError
from seunet.evaluation.estimated_scale import estimate_at, estimate_facts, estimator_for, training_mpp
from seunet.evaluation.figures.panels import panel
from seunet.evaluation.predictors import blind, resampled, scaled_filters, stated, ways_of_predicting
from seunet.evaluation.run import EvaluationSettings, evaluate
from seunet.models import HeadCalibration, ModelCard, ScaleUNet
from seunet.scale import estimate_scale
from support.images import band_limited
from support.made_tissue import made_tissue
from tests.support.prepared import prepared_tissue, saved_model
from tests.support.scale_estimators import saying, trusting_estimator

CARD = ModelCard(mpp=0.25, scaled_filters_range=(0.8, 1.25))


@pytest.fixture
def model(root: Path) -> ScaleUNet:
    model = saved_model(root / "model")
    model.card = CARD
    return model


def test_a_known_scale_goes_to_the_filters_within_the_range_and_to_the_pixels_beyond(model: ScaleUNet) -> None:
    image = band_limited(1, 40).sigmoid()
    with torch.inference_mode():
        assert torch.equal(stated(model, 1.2)(image), scaled_filters(model, 1.2)(image))
        assert torch.equal(stated(model, 2.0)(image), resampled(model, 2.0)(image))
        assert torch.equal(stated(model, 0.5)(image), resampled(model, 0.5)(image))
        assert torch.equal(stated(model, None)(image), blind(model, 1.0)(image))


def test_a_plain_unet_has_its_images_resized(root: Path) -> None:
    unet, image = saved_model(root / "unet", "unet"), band_limited(1, 40).sigmoid()
    with torch.inference_mode():
        assert torch.equal(stated(unet, 1.2)(image), resampled(unet, 1.2)(image))


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_an_image_at_a_test_scale_is_estimated_as_a_user_would_have_it(scale: float) -> None:
    pixels, estimator = made_tissue(800, 1.0), trusting_estimator()
    planes = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None].float()
    side = round(800 * scale)
    shown = torch.nn.functional.interpolate(planes, size=(side, side), mode="bilinear")
    by_hand = shown[0].round().to(torch.uint8).numpy().transpose(1, 2, 0)
    found, expected = estimate_at(pixels, scale, estimator), estimate_scale(by_hand, estimator=estimator)
    assert found.known
    assert found.reason == expected.reason
    assert found.relative_scale == pytest.approx(expected.relative_scale, rel=0.002)  # a grey value here and there


def test_what_is_too_small_at_the_test_scale_is_not_known() -> None:
    found = estimate_at(made_tissue(300, 1.0), 0.25, trusting_estimator())
    assert (found.known, found.reason) == (False, "too small: 75×75 px; 128 per side are needed")


def test_the_scale_is_relative_to_the_resolution_of_the_model() -> None:
    found = saying(2.0).estimate([None])  # type: ignore[list-item]
    assert estimate_facts(0.25, found) == {"scale": 2.0, "low": 1.66667, "high": 2.4, "reason": "as told"}
    assert estimate_facts(0.5, found)["scale"] == 4.0
    nothing = saying(0.0).estimate([])
    assert estimate_facts(0.25, nothing) == {"scale": None, "low": None, "high": None, "reason": "no tissue"}


def test_the_estimator_is_the_given_one_or_the_models_and_no_other_as_for_segment(model: ScaleUNet) -> None:
    with pytest.raises(InputError, match=r"this seunet has no scale estimator in its folder; pass --estimator nuclei,"):
        estimator_for(model)
    model.scale_estimator = saying(2.0)
    assert estimator_for(model) is model.scale_estimator
    given = saying(3.0)
    assert estimator_for(model, given) is given


def test_a_model_without_a_card_learnt_at_the_resolution_of_the_set(model: ScaleUNet, data: Path, root: Path) -> None:
    windows = WindowDataset(data, "test")
    model.card = ModelCard(mpp=0.4)
    assert training_mpp(model, windows) == 0.4
    model.card = None
    assert training_mpp(model, windows) == windows.manifest.images[0].mpp
    with pytest.raises(InputError, match="neither the card of this seunet nor the set says at how many it learnt"):
        training_mpp(model, WindowDataset(prepared_tissue(root), "train"))


@pytest.fixture
def large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of tests have 64 pixels a side."""
    monkeypatch.setattr("seunet.scale.estimator.MIN_SIDE_PX", 8)


def scores_of(document: dict[str, Any], way: str) -> dict[float, Any]:
    return {row["scale"]: row["confusions"] for row in document["results"] if row["way"] == way}


@pytest.mark.usefixtures("large_enough")
def test_an_estimate_that_is_right_does_as_well_as_a_stated_scale(model: ScaleUNet, data: Path, tmp_path: Path) -> None:
    settings = EvaluationSettings(scales=(2.0,), ways=("blind", "stated", "estimated"), estimator=saying(2.0))
    document = evaluate(model, data, tmp_path / "right", settings)
    assert scores_of(document, "estimated") == scores_of(document, "stated")
    assert scores_of(document, "estimated") != scores_of(document, "blind")
    (row,) = (row for row in document["results"] if row["way"] == "estimated")
    assert {each["scale"] for each in row["estimates"].values()} == {2.0}
    assert sorted(row["estimates"]) == document["data"]["images"]
    assert document["arguments"]["estimator"] == saying(2.0).sha256()
    assert any(line["label"] == "estimated, p_ens" for line in document["scores"])


@pytest.mark.usefixtures("large_enough")
def test_what_cannot_be_estimated_is_predicted_blind(model: ScaleUNet, data: Path, tmp_path: Path) -> None:
    settings = EvaluationSettings(scales=(2.0,), ways=("blind", "estimated"), estimator=saying(0.0))
    document = evaluate(model, data, tmp_path / "unsure", settings)
    assert scores_of(document, "estimated") == scores_of(document, "blind")


@pytest.mark.usefixtures("large_enough")
def test_a_calibration_believes_other_heads_where_the_scale_is_known(
    model: ScaleUNet, data: Path, tmp_path: Path
) -> None:
    only = [tuple(0.0 if head == chosen else -99.0 for head in range(5)) for chosen in (4, 1)]
    calibration = HeadCalibration(
        temperatures=(1,) * 5, prior=only[0], sharpness=0, prior_at_scale=only[1], sharpness_at_scale=0
    )
    model.card = CARD.model_copy(update={"calibration": calibration})
    settings = EvaluationSettings(
        scales=(2.0,),
        ways=("blind", "stated", "estimated", "pyramid"),
        fusions=("p_ens", "calibrated"),
        estimator=saying(2.0),
    )
    document = evaluate(model, data, tmp_path / "calibrated", settings)
    for way, head in (("blind", "head 5"), ("stated", "head 2"), ("estimated", "head 2")):
        rows = scores_of(document, way)[2.0]
        assert rows["calibrated"] == rows[head]
    assert "calibrated" not in scores_of(document, "pyramid")[2.0]


def test_a_window_is_shown_at_the_estimated_scale(model: ScaleUNet, data: Path) -> None:
    windows = WindowDataset(data, "test")
    (shown,) = panel(
        model, windows, 0, 1.0, ways_of_predicting(["estimated"]), "p_ens", estimator=saying(1.0)
    ).predictions
    assert shown[0] == "estimated, p_ens"
    assert np.array_equal(windows.whole(0).shape, (64, 64, 3))
