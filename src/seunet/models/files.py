"""Model files: `config.json` and `model.safetensors` in a folder.  No pickle, and nothing is built before it fits.

config.json: {"format": "seunet-model", "version": 1, "model": name, "options": {…}, "factor": 1.0,
              "weights": {"sha256": …, "bytes": …}, "card": {…} where there is one}
Beside them lie `scale.json` and `scale.safetensors` where the model can tell the scale from pixels (scale/files.py).
"""

from __future__ import annotations

import json
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from safetensors.torch import save as tensor_bytes

from seunet.device import usable_device
from seunet.errors import InputError, ModelFileError
from seunet.limits import MAX_PARAMETERS
from seunet.models.card import ModelCard
from seunet.models.config import ModelConfig
from seunet.models.places import (
    CONFIG_NAME,
    FORMAT,
    VERSION,
    WEIGHTS_NAME,
    Place,
    fetched_place,
    model_place,
    read_config,
)
from seunet.models.registry import build_model, model_config
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.files import has_estimator, load_estimator, save_estimator
from seunet.settings import first_fault
from seunet.storage.atomic import write_bytes, write_text
from seunet.storage.files import sha256
from seunet.storage.output_folder import something_else
from seunet.storage.tensors import Expected, read_tensors


def save(model: ScaleUNet, folder: str | os.PathLike[str]) -> None:
    """Write the two files atomically, the weights first: a config never points at weights that are not there."""
    place = Path(folder)
    weights = _weights(model)
    config: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": model.name,
        "options": model.config.model_dump(mode="json"),
        "factor": model.factor,
        "weights": {"sha256": sha256(weights), "bytes": len(weights)},
    }
    if model.card is not None:
        config["card"] = model.card.model_dump(mode="json")
    if model.scale_estimator is not None:
        save_estimator(model.scale_estimator, place)
    write_bytes(place / WEIGHTS_NAME, weights)
    write_text(place / CONFIG_NAME, json.dumps(config, indent=2) + "\n")


def check_no_other(model: ScaleUNet, folder: Path) -> None:
    """Refuse a folder that holds another model, or a config of something else."""
    path = folder / CONFIG_NAME
    if not path.exists():
        return
    try:
        config = read_config(path)
    except ModelFileError:
        raise something_else(folder, CONFIG_NAME, "choose another folder or pass overwrite=True") from None
    promised = config.get("weights")
    held = promised.get("sha256") if isinstance(promised, dict) else None
    if held != weights_sha256(model):
        raise InputError(
            f"{folder}: holds another model (weights {str(held)[:12]}); choose another folder or pass overwrite=True"
        )


def weights_sha256(model: ScaleUNet) -> str:
    """What the config of the saved model says of its weights: which weights these are, wherever they lie."""
    return sha256(_weights(model))


def _weights(model: ScaleUNet) -> bytes:
    return tensor_bytes({name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()})


def load(
    name_or_folder: str | os.PathLike[str], *, device: str | torch.device | None = None, classes: int | None = None
) -> ScaleUNet:
    """The trained model of that name, or in that folder, in evaluation mode.

    Everything is compared with what the config promises (size, hash, names, shapes and types of all tensors) before
    the network is built.

    Args:
        name_or_folder: a model of the package (`list_models(pretrained=True)`), what `save_pretrained` wrote, or a
            repository on the Hugging Face Hub (`hf-hub:owner/name` or `hf-hub:owner/name@revision`).
        device: where to keep it, as of `torch`; the CPU if None.
        classes: another number of classes than it has gets a fresh head, to be trained, and a warning that says so.
    """
    model = _load(model_place(name_or_folder))
    if classes is not None and classes != model.classes:
        before = model.classes
        model.reset_classifier(classes)
        warnings.warn(
            f"{name_or_folder}: the head of {before} classes is replaced by a fresh one of {classes}; train it first",
            stacklevel=2,
        )
    return model if device is None else model.to(_usable(device))


def _usable(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(usable_device("auto") if device == "auto" else device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"device {str(device)!r} cannot be used ({reason}); give 'cpu'") from None
    return found


def _load(place: Place) -> ScaleUNet:
    path = place.folder / CONFIG_NAME
    config = read_config(path)
    name, options = _field(path, config, "model", str), _field(path, config, "options", dict)
    promised, factor = _field(path, config, "weights", dict), _field(path, config, "factor", (int, float))
    try:
        checked = model_config(name, **options)
    except InputError as error:
        raise ModelFileError(f"{path}: {error}") from None
    card = _card(path, config, checked)
    expected = _expected_tensors(path, name, checked)
    tensors = read_tensors(place.folder / WEIGHTS_NAME, promised, expected)
    model = build_model(name, checked)
    model.load_state_dict(tensors)
    if isinstance(model, SEUNet) and factor != 1:
        model = model.at_scale(factor)
    model.card, model.source = card, place.source
    model.scale_estimator = load_estimator(place.folder) if has_estimator(place.folder) else None
    return model.eval()


class TrainedModel(NamedTuple):
    """A model that is shared by all who ask for it, so nobody may change it, and which weights it has."""

    model: ScaleUNet
    weights_sha256: str


def shared_model(name_or_folder: str | os.PathLike[str]) -> TrainedModel:
    """As `load`, of a model that takes RGB, but once per process for as long as the files stay as they are.

    The hub is asked once per process.
    """
    place = model_place(name_or_folder, _fetched_once)
    folder = place.folder.absolute()
    files = (path for kind in ("json", "safetensors") for path in folder.glob(f"*.{kind}") if path.is_file())
    states = sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    found = _shared(Place(folder, place.source), tuple(states))
    if found.model.in_channels != 3:
        raise InputError(f"{name_or_folder}: takes {found.model.in_channels} channels; segmenting needs a model of RGB")
    return found


_fetched_once = lru_cache(maxsize=16)(fetched_place)


@lru_cache(maxsize=2)
def _shared(place: Place, _states: tuple[tuple[str, int, int], ...]) -> TrainedModel:
    model = _load(place)
    return TrainedModel(model, weights_sha256(model))


def _card(path: Path, config: dict[str, Any], checked: ModelConfig) -> ModelCard | None:
    if "card" not in config:
        return None
    try:
        # Through JSON, where lists are tuples: strict in everything else.
        card = ModelCard.model_validate_json(json.dumps(config["card"]), strict=True)
    except ValidationError as error:
        raise ModelFileError(f"{path}: {first_fault(error, 'card')}") from None
    if card.class_names and len(card.class_names) != checked.classes:
        raise ModelFileError(f"{path}: names {len(card.class_names)} classes of {checked.classes}")
    return card


def _field(path: Path, config: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    value = config.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(f"{path}: field {name!r} is {'missing' if value is None else 'of the wrong type'}")
    return value


def _expected_tensors(path: Path, name: str, config: ModelConfig) -> Expected:
    """Names, shapes and types of the state of such a model, found without allocating it."""
    try:
        with torch.device("meta"):
            skeleton = build_model(name, config)
    except InputError as error:
        raise ModelFileError(f"{path}: {error}") from None
    parameters = sum(parameter.numel() for parameter in skeleton.parameters())
    if parameters > MAX_PARAMETERS:
        raise ModelFileError(f"{path}: asks for {parameters:,} parameters; the limit is {MAX_PARAMETERS:,}")
    return {key: (tuple(tensor.shape), tensor.dtype) for key, tensor in skeleton.state_dict().items()}
