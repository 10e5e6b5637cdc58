"""Figures that are drawn from files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from seunet.errors import InputError
from seunet.evaluation.figures.sigmas import HEIGHT_PX, WIDTH_PX, sigmas_figure
from seunet.evaluation.figures.style import write_png
from seunet.evaluation.figures.training import course, training_figure
from seunet.evaluation.provenance import sigma_facts
from tests.support.prepared import saved_model

STEPS = [
    {"step": 1, "loss": 1.0, "head_weights": [0.5, 0.5]},
    {"step": 2, "loss": 0.9, "head_weights": [0.6, 0.4]},
    {"step": 2, "validation": {"mean": 0.1}, "sigmas": [[0.2, 0.7], [0.3, 0.8], [0.25, 0.75]]},
    {"step": 3, "loss": 0.8, "head_weights": [0.7, 0.3]},
]


def test_the_sigmas_of_a_model_are_drawn_between_their_bounds(tmp_path: Path) -> None:
    sigma = sigma_facts(saved_model(tmp_path / "model"))
    assert sigma is not None
    figure = sigmas_figure(sigma, "σ")
    axis = figure.axes[0]
    assert [list(line.get_ydata()) for line in axis.lines] == [
        list(column) for column in zip(*sigma["sigmas"], strict=True)
    ]
    first = [segment[0][1] for segment in axis.collections[0].get_segments()]
    assert first == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    write_png(figure, tmp_path / "sigmas.png")
    with Image.open(tmp_path / "sigmas.png") as picture:
        assert (picture.format, picture.size) == ("PNG", (WIDTH_PX, HEIGHT_PX))


def test_free_sigmas_have_no_bounds_and_a_plain_model_no_sigmas(tmp_path: Path) -> None:
    sigma = sigma_facts(saved_model(tmp_path / "free", sigma="free"))
    assert sigma is not None
    assert not sigmas_figure(sigma, "σ").axes[0].collections
    assert sigma_facts(saved_model(tmp_path / "plain", "unet", widths=(4, 8))) is None


def test_weights_and_sigmas_over_a_run_are_those_of_its_log() -> None:
    found = course(STEPS, "log.jsonl")
    axes = training_figure(found, "run").axes
    assert list(axes[0].lines[1].get_xdata()) == [1, 2, 3]
    assert list(axes[0].lines[1].get_ydata()) == [0.5, 0.4, 0.3]
    assert [axis.get_title() for axis in axes[1:]] == [f"σ of layer {number} of 3" for number in (1, 2, 3)]
    assert list(axes[3].lines[1].get_ydata()) == [0.75]


def test_a_run_of_a_model_without_sigma_has_its_weights_alone() -> None:
    assert len(training_figure(course(STEPS[:2], "log.jsonl"), "run").axes) == 1


def test_a_log_without_steps_is_refused() -> None:
    with pytest.raises(InputError) as error:
        course([], "runs/a/log.jsonl")
    assert str(error.value) == "runs/a/log.jsonl: holds no steps of training; give the log.jsonl of a run"
