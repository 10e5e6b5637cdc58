"""To go on from a trained model: its weights, made to fit what the new one has more of, and what still holds of it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.maths.gaussian import jet_orders, jet_size
from seunet.models.card import ModelCard
from seunet.models.files import load
from seunet.models.inheritance import inherit, same_classes
from seunet.models.registry import model_config
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.checkpoint import model_of, read_checkpoint
from seunet.training.config import ModelSection, TrainingConfig
from seunet.training.head_bands import fitting_head, head_scales


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
    if added := higher_order(config, start):
        lines.append(f"derivatives up to order {added['order']} in place of lower ones: the new ones begin at 0")
        weights |= _with_order(weights, added["order"])
    model.load_state_dict(weights)
    first = config.recipe.first_head_scale
    found = inherit(own, start, None if first is None else fitting_head(head_scales(model, first)))
    estimator = start.scale_estimator
    # What the heads say changes with the weights; `seunet fit-scale` fits it anew.
    model.card, model.scale_estimator = found.card, None if estimator is None else estimator.of_texture()
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


def higher_order(config: TrainingConfig, start: ScaleUNet) -> dict[str, int]:
    """The order of derivatives that the config asks for, where that of `start` is lower."""
    asked, has = config.model.options.get("order"), getattr(start.config, "order", None)
    return {"order": asked} if isinstance(asked, int) and has is not None and asked > has else {}


def _with_order(weights: dict[str, Tensor], order: int) -> dict[str, Tensor]:
    """Coefficients for derivatives up to `order`: the network says what it said, and can learn to say more."""
    grown = {}
    for key, value in weights.items():
        if key.endswith("coefficients"):
            before = next(lower for lower in range(order) if jet_size(lower) == len(value))
            grown[key] = value.new_zeros(jet_size(order), *value.shape[1:])
            grown[key][[jet_orders(order).index(pair) for pair in jet_orders(before)]] = value
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
    have |= higher_order(config, start)
    return [f"{key} {value}" for key, value in wanted.items() if have.get(key) != value]
