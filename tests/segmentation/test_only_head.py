"""Where the scale is known and the card names a head, that head is computed alone; otherwise all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import seunet
from seunet.errors import InputError
from seunet.models import ModelCard
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
from support.cli import seunet as run
from support.made_tissue import made_tissue
from tests.support.networks import calm_model

PIXELS = made_tissue(120, 1.0)


def model_with(matched_head: int | None) -> Any:
    model: Any = calm_model("seunet", widths=(10, 20))
    model.card = ModelCard(mpp=0.25, matched_head=matched_head, class_names=("background", "nucleus"))
    return model


def head_probabilities(model: Any, number: int) -> np.ndarray:
    images = torch.from_numpy(PIXELS).permute(2, 0, 1)[None].float() / 255
    with torch.inference_mode():
        found: np.ndarray = model.eval()(images).softmax(2)[0, number].numpy()
    return found


@pytest.mark.parametrize("number", [1, 2, 5])
def test_with_a_known_scale_the_matched_head_is_the_result(number: int) -> None:
    model = model_with(number)
    found = seunet.segment(PIXELS, model, mpp=0.25)
    np.testing.assert_allclose(found.probabilities, head_probabilities(model, number - 1), atol=1e-5)
    assert (found.heads == number - 1).all()


def test_with_an_unknown_scale_or_no_matched_head_all_heads_are_fused() -> None:
    fused = seunet.segment(PIXELS, model_with(2), mpp=0.25, fusion="p_ens").probabilities
    assert (seunet.segment(PIXELS, model_with(2)).probabilities == fused).all()
    assert (seunet.segment(PIXELS, model_with(None), mpp=0.25).probabilities == fused).all()
    assert not np.allclose(fused, seunet.segment(PIXELS, model_with(2), mpp=0.25).probabilities, atol=1e-3)


@pytest.mark.parametrize("fusion", ["mean", "p_dist", "p_ens"])
def test_where_the_scale_is_not_known_the_card_says_how_heads_are_fused(fusion: str) -> None:
    model = model_with(2)
    asked = seunet.segment(PIXELS, model, scale="native", fusion=fusion).probabilities
    model.card = model.card.model_copy(update={"blind_fusion": fusion})
    assert (seunet.segment(PIXELS, model, scale="native").probabilities == asked).all()


def test_one_head_is_a_network_of_its_own_with_its_own_reach_and_sigma() -> None:
    model = model_with(2)
    whole, alone = HeadwiseNetwork(model), HeadwiseNetwork(model, only_head=1)
    assert (alone.heads, alone.reach_px) == (1, whole.reach_px[1:2])
    assert whole.sigmas_px is not None
    assert alone.sigmas_px == whole.sigmas_px[1:2]
    assert alone.identity() == whole.identity() | {"fusion": "head 2"}


def test_a_card_that_names_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="the card names head 6 and the model has 5; mend the card"):
        seunet.segment(PIXELS, model_with(6), mpp=0.25)


def test_the_command_says_which_head_it_computed(tmp_path: Path) -> None:
    model_with(3).save_pretrained(tmp_path / "model")
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    for name, options in {"known": ("--mpp", 0.25), "unknown": ()}.items():
        ran = run("segment", tmp_path / "a.png", "-o", tmp_path / name, "-m", tmp_path / "model", *options)
        assert ran.code == 0, ran.err
        (path,) = (tmp_path / name).glob("*/run.json")
        document = json.loads(path.read_text())
        assert ("head 3" in json.dumps(document)) == (name == "known")
        assert (path.parent / "heads.png").is_file() == (name == "unknown")
