"""Blind, scaled filters, resampled, pyramid: four functions of (model, s), and the memory-saving road to the heads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seunet.errors import InputError
from seunet.evaluation import predictors as ways
from seunet.evaluation.predictors import blind, head_logits, pyramid, resampled, scaled_filters, ways_of_predicting
from seunet.maths import fuse, rescale
from seunet.models import ScaleUNet, SEUNet
from support.images import band_limited
from tests.support.prepared import saved_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ScaleUNet:
    return saved_model(tmp_path_factory.mktemp("ways"))


@pytest.fixture
def image() -> torch.Tensor:
    return band_limited(1, 37).sigmoid()


@pytest.mark.parametrize("way", [scaled_filters, resampled])
def test_at_the_training_scale_knowing_it_changes_nothing(way: ways.Predict, model: ScaleUNet, image: torch.Tensor):
    with torch.inference_mode():
        assert torch.equal(way(model, 1.0)(image), blind(model, 1.0)(image))


def test_scaled_filters_are_the_model_at_that_scale(model: ScaleUNet, image: torch.Tensor) -> None:
    assert isinstance(model, SEUNet)
    with torch.inference_mode():
        assert torch.equal(scaled_filters(model, 2.0)(image), model.at_scale(2.0)(image).softmax(2))


def test_a_resampled_image_is_predicted_at_the_training_scale_and_answered_at_the_test_scale(model: ScaleUNet) -> None:
    small = band_limited(1, 20).sigmoid()
    large = rescale(small, 2.0)
    with torch.inference_mode():
        found = resampled(model, 2.0)(large)
        by_hand = rescale(model(rescale(large, 0.5)).softmax(2).flatten(1, 2), 2.0)
    assert found.shape == (1, 5, 2, 40, 40)
    torch.testing.assert_close(found.flatten(1, 2), by_hand)


@pytest.mark.parametrize("side", [21, 30, 50])
def test_resampling_keeps_the_size_of_the_image_where_rounding_does_not(side: int, model: ScaleUNet) -> None:
    with torch.inference_mode():
        for scale in (0.42, 1.19, 2.83):
            assert resampled(model, scale)(torch.rand(1, 3, side, side)).shape[-2:] == (side, side)


def test_a_level_of_the_pyramid_is_the_fused_prediction_of_the_resized_image(
    model: ScaleUNet, image: torch.Tensor
) -> None:
    with torch.inference_mode():
        found = pyramid(model, 1.0)(image)
        assert found.shape == (1, 5, 2, 37, 37)
        assert torch.equal(found[:, 2], fuse(model(image).softmax(2), "p_ens"))
        larger = fuse(model(rescale(image, 2.0)).softmax(2), "p_ens")
    torch.testing.assert_close(found[:, 4], rescale(larger, 0.5), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.sum(2), torch.ones(1, 5, 37, 37))


def test_large_images_run_scale_by_scale_to_the_same_bits(
    model: ScaleUNet, image: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.inference_mode():
        together = head_logits(model)(image)
        monkeypatch.setattr(ways, "VALUES_AT_ONCE", 1)
        assert torch.equal(head_logits(model)(image), together)


@pytest.mark.parametrize(
    "options",
    [{}, {"preset": "geometric"}, {"norm": "shared"}, {"sigma": "free"}, {"sigma": "fixed"}, {"order": 2}],
)
def test_one_scale_alone_is_its_head_of_the_whole(options: dict[str, object], tmp_path: Path) -> None:
    whole = saved_model(tmp_path, **options)
    assert isinstance(whole, SEUNet)
    images = torch.rand(2, 3, 20, 24)
    with torch.inference_mode():
        for model in (whole, whole.at_scale(1.7)):
            logits = model(images)
            for number in range(5):
                assert torch.equal(model.only_scale(number)(images), logits[:, number : number + 1])


def test_one_scale_alone_shares_its_weights(model: ScaleUNet) -> None:
    assert isinstance(model, SEUNet)
    part = model.only_scale(3)
    assert part.gaussian_layers()[0].coefficients is model.gaussian_layers()[0].coefficients
    assert part.heads == 1
    assert part.sigmas().shape == (len(model.gaussian_layers()), 1)
    assert model.heads == 5


def test_a_model_without_sigma_has_no_filters_to_scale(tmp_path: Path) -> None:
    plain = saved_model(tmp_path, "unet", widths=(4, 8))
    with pytest.raises(InputError) as error:
        scaled_filters(plain, 2.0)
    assert str(error.value) == (
        "--scaled-filters multiplies the σ of a model, and unet has none; leave it out, or use --resampled"
    )


def test_an_unknown_way_is_named() -> None:
    with pytest.raises(InputError, match="unknown way of predicting 'resampeld'; did you mean 'resampled'"):
        ways_of_predicting(["blind", "resampeld"])


def test_the_heads_of_a_plain_network_are_one_prediction(tmp_path: Path) -> None:
    plain = saved_model(tmp_path, "unet", widths=(4, 8))
    names = {way.name: way.head_names(plain) for way in ways_of_predicting(["blind", "pyramid"])}
    assert names == {"blind": ("prediction",), "pyramid": ("× 0.5", "× 0.7", "× 1", "× 1.4", "× 2")}
