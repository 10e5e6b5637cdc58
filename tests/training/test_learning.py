"""What is there to learn is learnt, by every model, through `train` itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from seunet.training.loading import Sources
from seunet.training.new_model import make_model
from seunet.training.validation import validate
from support.training import ALONE, tiny_config, train_alone

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
    before = validate(make_model(config, sources.manifest).eval(), sources.validation, ALONE, batch=8)
    assert before["p_ens"] < 0.4
    said: list[str] = []
    outcome = train_alone(config, tmp_path, say=said.append)
    assert outcome.best_iou is not None
    assert outcome.best_iou >= 0.9
    assert not any("nothing apart" in line for line in said)
