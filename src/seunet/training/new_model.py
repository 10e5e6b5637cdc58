"""The model that a config asks for, and the model that a checkpoint holds."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import torch

from seunet.data.manifest import Manifest
from seunet.errors import InputError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.models.card import ModelCard
from seunet.models.files import load
from seunet.models.registry import create_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.checkpoint import AVERAGED, Checkpoint, read_checkpoint, restore_model
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
    model.card = card_of(manifest, classes)
    return model


def begin_with(model: ScaleUNet, name_or_folder: str) -> None:
    """Give `model` the weights of a trained one of the same kind; σ and running statistics are among them.

    A checkpoint (`…/last.safetensors`) gives the weights a run ended with, whatever it held to be the best.
    """
    checkpoint = Path(name_or_folder)
    if checkpoint.suffix == ".safetensors" and not checkpoint.is_file():
        raise InputError(f"`start` (={name_or_folder}): no such checkpoint; make that run first, or give its path")
    trained = model_of(read_checkpoint(checkpoint)) if checkpoint.suffix == ".safetensors" else load(name_or_folder)
    before, now = (one.config.model_dump(mode="json") for one in (trained, model))
    if trained.name != model.name or before != now:
        different = next((name for name in now if before.get(name) != now[name]), "name")
        theirs, ours = before.get(different, trained.name), now.get(different, model.name)
        raise InputError(
            f"`start` (={name_or_folder}): a {trained.name} whose `{different}` is {theirs}, not {ours}; "
            "give `model` the values of the one to start from"
        )
    model.load_state_dict(trained.state_dict())


def card_of(manifest: Manifest, classes: int) -> ModelCard:
    """What a set says of the models that learn from it: the names of its classes, and its resolution if it has one."""
    by_code = {entry.code: entry for entry in manifest.classes}
    learnt_from = [image for image in manifest.images if image.split == "train"]
    resolutions = [image.mpp for image in learnt_from if image.mpp is not None]
    return ModelCard(
        mpp=statistics.median(resolutions) if resolutions and len(resolutions) == len(learnt_from) else None,
        class_names=tuple(by_code[code].name if code in by_code else f"class {code}" for code in range(classes)),
        class_colors=tuple(by_code[code].color if code in by_code else (128, 128, 128) for code in range(classes)),
        instances=any(image.instances is not None for image in learnt_from),
        trained_on=manifest.dataset,
    )


def model_facts(model: ScaleUNet) -> dict[str, Any]:
    """What a checkpoint must say for the model to be built again."""
    card = None if model.card is None else model.card.model_dump(mode="json")
    return {"name": model.name, "options": model.config.model_dump(mode="json"), "card": card}


def export_model(source: Path, folder: Path) -> None:
    """The weights of a checkpoint as a model folder that `seunet.load` reads."""
    model_of(read_checkpoint(source)).save_pretrained(folder)


def model_of(kept: Checkpoint) -> ScaleUNet:
    """The model of a checkpoint, with the averaged weights where they were averaged."""
    model = create_model(kept.facts["model"]["name"], **kept.facts["model"]["options"])
    averaged = f"{AVERAGED}module."
    restore_model(kept, model, averaged if any(name.startswith(averaged) for name in kept.tensors) else "model/")
    card = kept.facts["model"].get("card")
    model.card = None if card is None else ModelCard.model_validate_json(json.dumps(card))
    return model
