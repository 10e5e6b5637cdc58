"""Δ_s over a set: the pairings, the mean over windows, interruptions, the tables and the heat maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from seunet.errors import InputError
from seunet.evaluation import report_folder
from seunet.evaluation.equivariance import pair_errors, squared_ratio, without_mean
from seunet.evaluation.equivariance_report import (
    EquivarianceSettings,
    head_sigmas,
    markdown,
    matched_heads,
    measure_equivariance,
)
from seunet.evaluation.figures.filters import errors_figure
from seunet.evaluation.run import open_windows
from seunet.maths import rescale
from seunet.models import ScaleUNet
from tests.support.prepared import saved_model

SETTINGS = EquivarianceSettings(scales=(0.5, 2.0))


@pytest.fixture(scope="module")
def document(root: Path, data: Path, model: ScaleUNet) -> dict[str, Any]:
    return measure_equivariance(model, data, root / "out", SETTINGS)


@pytest.mark.parametrize("centre", [False, True])
def test_an_error_is_the_mean_over_windows_computed_pair_by_pair(
    centre: bool, document: dict[str, Any], data: Path, model: ScaleUNet
) -> None:
    windows = open_windows(data, "test", None)
    total = torch.zeros(5, 5, dtype=torch.float64)
    with torch.no_grad():
        for number in range(len(windows)):
            image = windows[number].image[None]
            original, after = model(image), model(rescale(image, 2.0))
            if centre:
                original, after = without_mean(original), without_mean(after)
            for k in range(5):
                for other in range(5):
                    total[k, other] += squared_ratio(rescale(original[:, k], 2.0), after[:, other]).double()
    mean = total / len(windows)
    found = document["errors"][1]["without_mean" if centre else "as_in_the_paper"]
    torch.testing.assert_close(torch.tensor(found["matrix"], dtype=torch.float64), mean, rtol=1e-4, atol=1e-7)
    matched = matched_heads(head_sigmas(model), 2.0)
    assert found["matched"] == pytest.approx(float(mean[range(5), matched].mean()), rel=1e-4)
    assert found["same"] == pytest.approx(float(mean.diagonal().mean()), rel=1e-4)
    assert found["best"] == pytest.approx(float(mean.min()), rel=1e-4, abs=1e-6)


def test_all_pairs_at_once_are_those_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seunet.evaluation.equivariance._STRIP_ROWS", 5)
    original, after = torch.randn(3, 4, 2, 8, 9) + 10, torch.randn(3, 4, 2, 16, 18) + 10
    found = pair_errors(original, after, 2.0)
    for k in range(4):
        for other in range(4):
            expected = squared_ratio(rescale(original[:, k], 2.0), after[:, other])
            assert float(found[k, other]) == pytest.approx(float(expected), rel=1e-5)


def test_a_head_is_matched_with_the_one_whose_sigma_has_the_ratio() -> None:
    assert matched_heads([0.5, 1.0, 1.5, 2.0, 2.5], 0.5) == [0, 0, 1, 1, 2]
    assert matched_heads([0.5, 1.0, 1.5, 2.0, 2.5], 1.0) == [0, 1, 2, 3, 4]
    assert matched_heads([1.0], 4.0) == [0]


def test_the_default_scales_are_the_papers_without_one() -> None:
    assert len(EquivarianceSettings().scales) == 16
    assert 1.0 not in EquivarianceSettings().scales


def test_the_mean_is_over_the_scales(document: dict[str, Any]) -> None:
    values = [row["as_in_the_paper"]["same"] for row in document["errors"]]
    assert document["mean"]["as_in_the_paper"]["same"] == pytest.approx(sum(values) / 2, abs=1e-6)


def test_an_interrupted_measurement_goes_on_and_ends_with_the_same_report(
    document: dict[str, Any], data: Path, model: ScaleUNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    real = report_folder.note_part

    def interrupted(clock: dict[str, Any], part: str, seconds: float) -> None:
        real(clock, part, seconds)
        kept.append(part)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report_folder, "note_part", interrupted)
        with pytest.raises(KeyboardInterrupt):
            measure_equivariance(model, data, tmp_path, SETTINGS)
    assert len(json.loads((tmp_path / "equivariance.partial.json").read_text())["results"]) == 1
    again = measure_equivariance(model, data, tmp_path, SETTINGS)
    assert {**again, "clock": 0} == {**document, "clock": 0}
    assert measure_equivariance(model, data, tmp_path, SETTINGS) == again


def test_the_table_has_both_pairings_and_the_matrices(document: dict[str, Any]) -> None:
    text = markdown(document)
    assert "| test scale | 0.5 | 2 | mean |" in text
    for label in ("σ-matched heads", "same head", "best pair", "same head, without the mean of each map"):
        assert f"\n| {label} | " in text
    assert text.count("**") == 2 * 5 * 2
    assert "s = 0.5: σ of the last layer" in text


def test_the_heat_maps_show_the_matrices(document: dict[str, Any]) -> None:
    axes = [axis for axis in errors_figure(document, "as_in_the_paper").axes if axis.get_title()]
    assert [axis.get_title().split(" ·")[0] for axis in axes] == ["s = 0.5", "s = 2"]
    shown = torch.tensor(axes[1].images[0].get_array().tolist())
    torch.testing.assert_close(shown, 100 * torch.tensor(document["errors"][1]["as_in_the_paper"]["matrix"]))


def test_a_model_of_one_prediction_has_one_error(data: Path, tmp_path: Path) -> None:
    plain = saved_model(tmp_path / "model", "unet", widths=(4, 8))
    document = measure_equivariance(plain, data, tmp_path / "out", EquivarianceSettings(scales=(0.5,)))
    row = document["errors"][0]["as_in_the_paper"]
    assert row["matched"] == row["same"] == row["best"] > 0
    assert "σ-matched" not in markdown(document)


def test_scale_one_is_refused(data: Path, model: ScaleUNet, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        measure_equivariance(model, data, tmp_path, EquivarianceSettings(scales=(0.5, 1.0)))
    assert str(error.value) == "scale 1 leaves an image as it is, and Δ is 0; leave it out"
