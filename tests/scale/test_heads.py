"""What the heads of a network say of the scale: the profile, both opinions together, its files, and who asks for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import seunet
from seunet.errors import ModelFileError
from seunet.images import ArrayImage
from seunet.models import second_opinion, sureness_of
from seunet.scale import HeadTemplates, Limits, ScaleEstimator, fit_templates, read_both, read_scale, shipped_estimator
from seunet.scale.estimator import colour_fault
from seunet.scale.files import load_estimator, save_estimator
from seunet.scale.heads import LOOK_PX, head_profile, part_with_tissue
from seunet.scale.regions import observe
from seunet.scale.signatures import signature
from seunet.segmentation import known_scale
from support.made_tissue import made_tissue
from tests.support.scale_estimators import trusting_estimator

RgbArray = NDArray[np.uint8]
CENTRES = np.linspace(-1.5, 1.5, 15)
"""log₂ s at which each of fifteen made heads is surest."""


def said_at(log2_scale: float) -> NDArray[np.float64]:
    """What made heads say at a scale."""
    return 2 - (log2_scale - CENTRES) ** 2


def with_heads(estimator: ScaleEstimator) -> ScaleEstimator:
    random = np.random.default_rng(2)
    scales = random.uniform(-2.6, 2.6, 2000)
    said = np.stack([said_at(scale) for scale in scales]) + random.normal(0, 0.3, (2000, 15))
    templates = fit_templates(said, scales, np.ones(2000))
    return replace(estimator, heads=HeadTemplates(templates, Limits(60.0, (1.0, 1.0, 1.0, 1.0))))


@pytest.fixture(scope="module")
def both() -> ScaleEstimator:
    return with_heads(trusting_estimator())


def test_a_profile_is_the_logit_of_the_mean_sureness_over_tissue_at_three_sizes() -> None:
    shown: list[tuple[int, ...]] = []

    def sureness(rgb: RgbArray) -> NDArray[np.float32]:
        """One head is sure of dark pixels, one of everything by half, one of nothing."""
        shown.append(rgb.shape)
        dark = (rgb.min(axis=2) < 200).astype(np.float32)
        return np.stack([dark, np.full_like(dark, 0.5), np.zeros_like(dark)])

    pixels = np.full((1000, 700, 3), 255, np.uint8)
    pixels[:, :350] = 100
    most = np.log(0.997 / 0.003)
    assert head_profile(pixels, sureness) == pytest.approx([most, 0, -most] * 3)
    assert shown == [(LOOK_PX, LOOK_PX, 3), (LOOK_PX // 2, LOOK_PX // 2, 3), (LOOK_PX, LOOK_PX, 3)]


def test_the_part_with_the_most_tissue_is_looked_at_and_the_middle_of_what_is_alike() -> None:
    pixels = np.full((900, 900, 3), 255, np.uint8)
    pixels[550:, 550:] = 90
    assert (part_with_tissue(pixels, 300) == 90).all()
    columns = np.broadcast_to(np.arange(200, dtype=np.uint8)[:, None], (200, 200, 3))
    assert part_with_tissue(columns, 100)[0, 0, 0] == 50
    assert part_with_tissue(columns, 500).shape == (200, 200, 3)


def test_a_model_is_sure_where_one_class_is_far_more_probable_than_the_next() -> None:
    model = seunet.create_model("seunet", widths=(5, 10), classes=2, preset="geometric").eval()
    rgb = made_tissue(64, 1.0)
    import torch

    with torch.inference_mode():
        p = model(torch.from_numpy(rgb.transpose(2, 0, 1).copy())[None].float() / 255).softmax(2)[0, :, 1].numpy()
    assert sureness_of(model)(rgb) == pytest.approx((2 * p - 1) ** 2, abs=1e-6)


@pytest.mark.parametrize("truth", [-1.0, 0.0, 1.2])
def test_heads_that_are_sure_outweigh_a_texture_that_is_like_nothing_seen(both: ScaleEstimator, truth: float) -> None:
    assert both.heads is not None
    texture = signature(observe(made_tissue(400, 1.0)).moments)
    far = texture + 30 * both.templates.spread * np.random.default_rng(5).normal(size=len(texture))
    for seen in (texture, far):
        found = read_both(both.templates, seen, both.heads.templates, said_at(truth))
        assert found.log2_scale == pytest.approx(truth, abs=0.15)
    assert found.distance < 30


def test_heads_that_say_nothing_known_are_refused_and_texture_alone_is_as_before(both: ScaleEstimator) -> None:
    region = observe(made_tissue(400, 1.0))
    strange = both.estimate([region._replace(heads=20 * np.cos(np.arange(15.0)))])
    assert not strange.known
    assert strange.reason.startswith("unlike stained tissue at any scale: distance ")
    assert strange.reason.endswith(" > 60")
    alone = both.estimate([region])
    assert alone == both.of_texture().estimate([region])
    assert alone.relative_scale == 2 ** read_scale(both.templates, signature(region.moments)).log2_scale
    asked = both.estimate([region._replace(heads=said_at(0.5))])
    assert asked.relative_scale == pytest.approx(2**0.5, rel=0.1)
    assert both.sha256() != both.of_texture().sha256()


def test_doubtful_colours_are_believed_where_the_heads_are_at_home_and_grey_never() -> None:
    grey = np.full(3, 3**-0.5)
    across = np.array([1.0, -1.0, 0.0]) / 2**0.5

    def varied_along(degrees: float) -> NDArray[np.float64]:
        main = np.cos(np.radians(degrees)) * grey + np.sin(np.radians(degrees)) * across
        other = np.array([1.0, 1.0, -2.0]) / 6**0.5
        return np.outer(main, main) + 0.04 * np.outer(other, other)

    assert colour_fault(varied_along(3)) == "not coloured by stains: 3.0° from grey"
    assert colour_fault(varied_along(3), 10.0) is None
    assert colour_fault(varied_along(3), 16.0) == "not coloured by stains: 3.0° from grey"
    assert colour_fault(varied_along(0.5), 10.0) == "not coloured by stains: 0.5° from grey"


def test_both_opinions_come_back_from_files_and_older_files_have_one(both: ScaleEstimator, tmp_path: Path) -> None:
    save_estimator(both, tmp_path)
    loaded = load_estimator(tmp_path)
    assert both.heads is not None
    assert loaded.heads is not None
    assert loaded.heads.limits == both.heads.limits
    assert np.allclose(loaded.heads.templates.means, both.heads.templates.means, atol=1e-6)
    assert json.loads((tmp_path / "scale.json").read_text())["version"] == 3
    config = json.loads((tmp_path / "scale.json").read_text())
    config["heads"]["features"] = 12
    (tmp_path / "scale.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match=r"heads\.center"):
        load_estimator(tmp_path)
    save_estimator(shipped_estimator(), tmp_path)
    assert load_estimator(tmp_path).heads is None
    assert json.loads((tmp_path / "scale.json").read_text())["version"] == 2


def test_segment_asks_the_heads_of_the_model_that_the_estimator_was_fitted_to(both: ScaleEstimator) -> None:
    model = seunet.create_model("seunet", widths=(5, 10), classes=2, preset="geometric").eval()
    assert second_opinion(model) is None
    model.scale_estimator, model.card = both, seunet.models.ModelCard(mpp=0.25)
    assert second_opinion(model) is not None
    pixels = made_tissue(300, 1.0)
    found = known_scale(ArrayImage(pixels), model).estimate
    region = observe(pixels, sureness_of(model))
    assert found == both.estimate([region])
    other = model.at_scale(2.0)
    other.scale_estimator = both
    assert second_opinion(other) is None, "filters of another size are sure elsewhere"
