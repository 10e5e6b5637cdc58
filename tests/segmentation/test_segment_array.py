"""`seunet.segment` on arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seunet
from seunet.errors import InputError
from seunet.models import ModelCard, SEUNet
from tests.support.networks import calm_model, picture


def with_card(name: str = "seunet", **options: Any) -> Any:
    model: Any = calm_model(name, **options)
    model.card = ModelCard(mpp=0.25, scaled_filters_range=(0.5, 2.0))
    return model


def test_labels_probabilities_and_heads_of_an_array(tmp_path: Path) -> None:
    model, pixels = calm_model(widths=(5, 5, 5), classes=3), picture(90, 70)
    with torch.inference_mode():
        heads = model(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255).softmax(2)
    result = seunet.segment(pixels, model)
    assert np.allclose(result.probabilities, seunet.fuse(heads)[0].numpy(), atol=1e-6)
    assert np.array_equal(result.labels, result.probabilities.argmax(0))
    assert (result.labels.dtype, result.heads.dtype) == (np.uint8, np.uint8)
    assert result.confidence.shape == result.heads.shape == (90, 70)
    assert result.heads.max() <= 4
    assert result.relative_scale is None
    assert "mpp is not known" in result.plan.reason
    model.save_pretrained(tmp_path / "model")
    loaded = seunet.segment(pixels, tmp_path / "model", tile_px=32)
    assert np.array_equal(loaded.probabilities, result.probabilities)
    assert np.array_equal(seunet.segment(pixels, str(tmp_path / "model")).labels, result.labels)


def test_a_known_mpp_scales_the_filters() -> None:
    model, pixels = with_card(widths=(5, 5, 5)), picture(64, 80)
    assert isinstance(model, SEUNet)
    result = seunet.segment(pixels, model, mpp=0.2)
    assert result.relative_scale == 1.25
    expected = seunet.segment(pixels, model.at_scale(1.25))
    assert np.array_equal(result.probabilities, expected.probabilities)
    assert not np.array_equal(result.probabilities, seunet.segment(pixels, model).probabilities)


@pytest.mark.parametrize(("mpp", "resample"), [(0.0625, 0.25), (1.0, 4.0)])
def test_far_from_the_training_scale_the_labels_are_still_the_input_s_pixels(mpp: float, resample: float) -> None:
    result = seunet.segment(picture(40, 61), with_card(widths=(5, 5)), mpp=mpp)
    assert result.plan.resample == resample
    assert result.labels.shape == result.heads.shape == result.confidence.shape == (40, 61)
    assert result.probabilities.shape == (2, 40, 61)
    assert np.allclose(result.probabilities.sum(0), 1, atol=1e-5)


def test_a_model_without_sigma_is_given_its_training_scale() -> None:
    result = seunet.segment(picture(40, 60), with_card("unet", widths=(4, 4)), mpp=0.2)
    assert (result.plan.resample, result.plan.factor) == (0.8, 1)


def test_glass_is_left_out_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seunet.images.overview.SMALL_PX", 1000)
    pixels = np.full((300, 300, 3), 244, dtype=np.uint8)
    pixels[:50, :50] = picture(50, 50) // 2
    result = seunet.segment(pixels, calm_model(widths=(5, 5)), tissue=True)
    assert (result.labels[200:] == 0).all()
    assert (result.probabilities[0, 200:] == 1).all()


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ([[1]], "`image` is a list; give a path, a PIL image, a NumPy array, a tensor or what has `__array__`"),
        (None, "`image` is a NoneType; give a path"),
        (np.zeros((9, 9, 2), np.uint8), r"`image` of shape 9×9×2 must be \[height, width, 3\]"),
        (np.zeros((2, 3, 9, 9), np.uint8), "of shape 2×3×9×9 must be"),
        (np.full((4, 4, 3), 200.0), "of type float64 has values from 200 to 200; floats must lie in 0 … 1"),
        (np.full((4, 4, 3), np.nan), "has values from nan to nan; floats must lie"),
        (np.zeros((4, 4, 3), np.uint16), "of type uint16 must be uint8, or float in 0 … 1"),
        ("nowhere.svs", "nowhere.svs: cannot be read .No such file or directory.; check the path"),
        (np.zeros((0, 4, 3), np.uint8), "has no pixels"),
        (np.zeros((), np.uint8), r"of shape \(\)"),
        (np.broadcast_to(np.uint8(0), (20000, 20000, 3)), "too large to be held"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        seunet.segment(image, calm_model(widths=(5, 5)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mpp", [0, -1.0, float("nan"), "0.25", True])
def test_an_impossible_mpp_is_refused(mpp: Any) -> None:
    with pytest.raises(InputError, match="must be a number of µm per pixel"):
        seunet.segment(picture(8, 8), calm_model(widths=(5, 5)), mpp=mpp)


def test_read_only_arrays_are_read(recwarn: pytest.WarningsRecorder) -> None:
    pixels = picture(20, 20)
    pixels.flags.writeable = False
    seunet.segment(pixels, calm_model(widths=(5, 5)))
    assert not recwarn
