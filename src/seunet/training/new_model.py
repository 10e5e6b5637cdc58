"""The model that a config asks for, and the model that a checkpoint holds."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seunet.data.manifest import Manifest, padding_note, read_manifest
from seunet.errors import InputError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.models.card import ModelCard
from seunet.models.files import load
from seunet.models.inheritance import inherit, same_classes
from seunet.models.registry import create_model, model_config
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.checkpoint import AVERAGED, Checkpoint, read_checkpoint, restore_model
from seunet.training.config import DataSection, ModelSection, TrainingConfig
from seunet.training.distributed import Processes
from seunet.training.head_bands import fitting_head, head_bands, head_scales
from seunet.training.loading import Sources, check_shares


def model_and_sources(
    config: TrainingConfig, processes: Processes, begun: Path | None
) -> tuple[ScaleUNet, Sources, list[str]]:
    """The model, with the weights of `start` where it begins with them, the windows it learns from, and what to say.

    `begun` is the last checkpoint of a run that goes on.
    """
    lines: list[str] = []
    root = config.data.all_sets()[0].root
    manifest = read_manifest(root)
    if config.start is None:
        model = make_model(config, manifest)
    elif begun is not None and begun.is_file():
        # What it began with need not be there any more.
        model = _synced(model_of(read_checkpoint(begun), averaged=False), config)
    else:
        start = start_model(config.start)
        model = make_model(config, manifest, start)
        lines = begin_with(model, start, config)
    sources = Sources(config.data, config.seed, head_bands(config, model), config.recipe.foreign_share)
    check_shares(sources.training, config.recipe, processes, root)
    if model.card is not None:
        learnt = {*model.card.learnt_from, *(image.image.pixel_sha256 for image in sources.held_out.learnt_from)}
        model.card = model.card.model_copy(update={"learnt_from": tuple(sorted(learnt))})
    note = padding_note(manifest)
    return model, sources, [str(sources.held_out), *([note] if note else []), *lines]


def make_model(config: TrainingConfig, manifest: Manifest, start: ScaleUNet | None = None) -> ScaleUNet:
    """Fresh weights drawn from the seed, with as many classes as the data has unless the config says otherwise.

    The network is that of `start`, where there is one, whatever the config says of it.
    """
    options, known = config.model.options, manifest.classes
    rim = config.data.rim_um is not None
    needed = max(entry.code for entry in known) + 1 + rim
    classes = options.pop("classes", needed)
    if rim and classes != needed:
        raise InputError(f"`model.classes` (={classes}) must be {needed} with `data.rim_um`; leave it out")
    if isinstance(classes, int) and classes < needed:
        beyond = next(entry for entry in known if entry.code >= classes)
        root = config.data.all_sets()[0].root
        raise InputError(
            f"{root}: class {beyond.code} ({beyond.name}) is not among the {classes} of `model.classes`; "
            f"set it to {needed} or leave it out"
        )
    name, preset = config.model.name, config.model.preset
    if start is not None:
        name, preset, options = start.name, "paper", start.config.model_dump(exclude={"classes"})
    torch.manual_seed(config.seed)
    model = create_model(name, preset=preset, classes=classes, **options)
    model.card = card_of(manifest, classes, config.data)
    return _synced(model, config)


def _synced(model: ScaleUNet, config: TrainingConfig) -> ScaleUNet:
    for module in model.modules():
        if isinstance(module, ScaleNorm2d):
            module.synced = config.recipe.sync_norm
    return model


def start_model(name_or_path: str) -> ScaleUNet:
    """The trained model to begin with.

    A checkpoint (`…/last.safetensors`) gives the weights a run ended with, whatever it held to be the best.
    """
    checkpoint = Path(name_or_path)
    if checkpoint.suffix != ".safetensors":
        return load(name_or_path)
    if not checkpoint.is_file():
        raise InputError(f"`start` (={name_or_path}): no such checkpoint; make that run first, or give its path")
    return model_of(read_checkpoint(checkpoint))


def begin_with(model: ScaleUNet, start: ScaleUNet, config: TrainingConfig) -> list[str]:
    """Give `model` the weights of `start` and what still holds of its card; what was done, in lines for people.

    σ and running statistics are among the weights.  A head for other classes is left as it was drawn.
    """
    own, name = model.card or ModelCard(), config.start
    lines = [f"starts from {name}: a {start.name} of {sum(p.numel() for p in start.parameters()):,} parameters"]
    if unused := _unused_options(config, start):
        lines.append(f"the network is that of {name}; not used of `model`: {', '.join(unused)}")
    weights = start.state_dict()
    if not same_classes(own, start):
        before = ", ".join(start.card.class_names) if start.card and start.card.class_names else str(start.classes)
        lines.append(f"the head is made anew: classes {', '.join(own.class_names)} in place of {before}")
        weights |= {key: value for key, value in model.state_dict().items() if key.startswith("head.")}
    elif own.rim is not None and start.rim is None:
        lines.append(f"the head is that of {name} with the rim as one more class")
        weights |= _with_rim(weights)
    elif own.rim is None and start.rim is not None:
        lines.append(f"the head is that of {name} without the rim; `data.rim_um` would keep it (instance maps needed)")
        weights |= {key: value[:-1] for key, value in weights.items() if key.startswith("head.")}
    model.load_state_dict(weights)
    first = config.recipe.first_head_scale
    found = inherit(own, start, None if first is None else fitting_head(head_scales(model, first)))
    model.card, model.scale_estimator = found.card, start.scale_estimator
    if found.kept:
        lines.append(f"inherited from {name}: {', '.join(found.kept)}")
    if found.lost:
        lines.append(f"not inherited from {name}: {', '.join(found.lost)}")
    return lines


RIM_BIAS = -3.0
"""Of the rim's logit to the object's at the start: e^-3 of the object's probability."""


def _with_rim(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The head with a rim that looks like the object and is rarer: object and rim together are what the object was."""
    grown = {key: torch.cat([value, value[-1:]]) for key, value in weights.items() if key.startswith("head.")}
    for key, value in grown.items():
        if key.endswith("bias"):
            value[-1] += RIM_BIAS
    return grown


def _unused_options(config: TrainingConfig, start: ScaleUNet) -> list[str]:
    """What the config says of the network and is not so; a misspelt option is refused as without a start."""
    asked = config.model
    if asked == ModelSection():
        return []
    if asked.name != start.name:
        return [f"name {asked.name}"]
    options = {key: value for key, value in asked.options.items() if key != "classes"}
    wanted = model_config(asked.name, asked.preset, **options).model_dump(mode="json", exclude={"classes"})
    have = start.config.model_dump(mode="json")
    return [f"{key} {value}" for key, value in wanted.items() if have.get(key) != value]


RIM_NAME, RIM_COLOR = "rim", (200, 60, 160)


def card_of(manifest: Manifest, classes: int, data: DataSection | None = None) -> ModelCard:
    """What a set says of the models that learn from it: the names of its classes, and its resolution if it has one.

    `data` says what else the training made of it: the scale it is brought to, the rim, other sets.
    """
    by_code = {entry.code: entry for entry in manifest.classes}
    learnt_from = [image for image in manifest.images if image.split == "train"]
    rim = data is not None and data.rim_um is not None
    names = [by_code[code].name if code in by_code else f"class {code}" for code in range(classes - rim)]
    colors = [by_code[code].color if code in by_code else (128, 128, 128) for code in range(classes - rim)]
    several = data is not None and data.sets is not None
    resolutions = [image.mpp for image in learnt_from if image.mpp is not None]
    median = statistics.median(resolutions) if resolutions and len(resolutions) == len(learnt_from) else None
    return ModelCard(
        mpp=median if data is None or data.mpp is None else data.mpp,
        class_names=(*names, RIM_NAME) if rim else tuple(names),
        class_colors=(*colors, RIM_COLOR) if rim else tuple(colors),
        rim=classes - 1 if rim else None,
        instances=any(image.instances is not None for image in learnt_from),
        trained_on=", ".join(one.root.name for one in data.all_sets()) if data and several else manifest.dataset,
    )


def model_facts(model: ScaleUNet) -> dict[str, Any]:
    """What a checkpoint must say for the model to be built again."""
    card = None if model.card is None else model.card.model_dump(mode="json")
    return {"name": model.name, "options": model.config.model_dump(mode="json"), "card": card}


def model_of(kept: Checkpoint, averaged: bool = True) -> ScaleUNet:
    """The model of a checkpoint, with the averaged weights where they were averaged."""
    model = create_model(kept.facts["model"]["name"], **kept.facts["model"]["options"])
    means = f"{AVERAGED}module."
    has_means = averaged and any(name.startswith(means) for name in kept.tensors)
    restore_model(kept, model, means if has_means else "model/")
    card = kept.facts["model"].get("card")
    model.card = None if card is None else ModelCard.model_validate_json(json.dumps(card))
    return model
