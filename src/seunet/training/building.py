"""The model that a config asks for, and the model that a checkpoint holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from seunet.data.manifest import Manifest
from seunet.errors import InputError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.models.registry import create_model
from seunet.models.skeleton import ScaleUNet
from seunet.training.checkpoint import read_checkpoint, restore_model
from seunet.training.config import TrainingConfig


def make_model(config: TrainingConfig, manifest: Manifest) -> ScaleUNet:
    """Fresh weights drawn from the seed, with as many classes as the data has unless the config says otherwise."""
    options, known = config.model.options, manifest.classes
    needed = max(entry.code for entry in known) + 1
    classes = options.pop("classes", needed)
    if isinstance(classes, int) and classes < needed:
        beyond = next(entry for entry in known if entry.code >= classes)
        raise InputError(
            f"{config.data.root}: class {beyond.code} ({beyond.name}) is not among the {classes} of `model.classes`; "
            f"set it to {needed} or leave it out"
        )
    torch.manual_seed(config.seed)
    model = create_model(config.model.name, preset=config.model.preset, classes=classes, **options)
    for module in model.modules():
        if isinstance(module, ScaleNorm2d):
            module.synced = config.recipe.sync_norm
    return model


def model_facts(model: ScaleUNet) -> dict[str, Any]:
    """What a checkpoint must say for the model to be built again."""
    return {"name": model.name, "options": model.config.model_dump(mode="json")}


def export_model(source: Path, folder: Path) -> None:
    """The weights of a checkpoint as a model folder that `seunet.load` reads."""
    kept = read_checkpoint(source)
    model = create_model(kept.facts["model"]["name"], **kept.facts["model"]["options"])
    restore_model(kept, model)
    model.save_pretrained(folder)
