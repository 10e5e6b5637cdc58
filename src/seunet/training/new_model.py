"""The model that a config asks for, and the windows that it learns from."""

from __future__ import annotations

import statistics
from pathlib import Path

import torch

from seunet.data.manifest import Manifest, padding_note, read_manifest
from seunet.errors import InputError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.models.card import ModelCard
from seunet.models.registry import create_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.checkpoint import model_of, read_checkpoint
from seunet.training.config import DataSection, TrainingConfig
from seunet.training.distributed import Processes
from seunet.training.head_bands import head_bands
from seunet.training.loading import Sources, check_shares
from seunet.training.starting import begin_with, higher_order, start_model


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

    The network is that of `start`, where there is one, whatever the config says of it, but for derivatives of a higher
    order, which can be added to it.
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
        order = higher_order(config, start)
        name, preset, options = start.name, "paper", start.config.model_dump(exclude={"classes"}) | order
    torch.manual_seed(config.seed)
    model = create_model(name, preset=preset, classes=classes, **options)
    model.card = card_of(manifest, classes, config.data)
    return _synced(model, config)


def _synced(model: ScaleUNet, config: TrainingConfig) -> ScaleUNet:
    for module in model.modules():
        if isinstance(module, ScaleNorm2d):
            module.synced = config.recipe.sync_norm
    return model


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
