"""A training run's state in one safetensors file: written whole or not at all, never unpickled.

Tensors: `model/NAME`, `average/NAME` where weights are averaged, `optimizer/NAME/KEY`, `rng/torch`.  Metadata: one
entry, JSON with `facts` (step, config, data hash, …) and the `sha256` of names, types, shapes and bytes of all tensors
and of the facts.  One entry, because safetensors writes several in random order, and the same state is to be the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as tensor_bytes
from torch import Tensor, nn

from seunet.errors import ModelFileError
from seunet.models.card import ModelCard
from seunet.models.registry import create_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.atomic import write_bytes

FORMAT: Final = "seunet-checkpoint-1"
AVERAGED: Final = "average/"
"""Before the names of the running mean of the weights and of how many it is of."""


class Checkpoint(NamedTuple):
    """What was read or is to be written."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def model_tensors(model: nn.Module, prefix: str = "model/") -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in model.state_dict().items()}


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's memory of each parameter, by the parameter's name."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"optimizer/{names[id(parameter)]}/{key}": value
        for parameter, memory in optimizer.state.items()
        for key, value in memory.items()
    }


def restore_model(checkpoint: Checkpoint, model: nn.Module, prefix: str = "model/") -> None:
    model.load_state_dict(_under(checkpoint, prefix))


def restore_optimizer(checkpoint: Checkpoint, optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Put the memory of each parameter back, on the parameter's device."""
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for path, value in _under(checkpoint, "optimizer/").items():
        name, _, key = path.rpartition("/")
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device) if value.ndim else value


def _under(checkpoint: Checkpoint, prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: tensor for name, tensor in checkpoint.tensors.items() if name.startswith(prefix)}


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Atomically: a kill at any moment leaves the old file or the new one."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    header = {"facts": checkpoint.facts, "sha256": _digest(tensors, checkpoint.facts)}
    write_bytes(path, tensor_bytes(tensors, metadata={FORMAT: json.dumps(header, ensure_ascii=False)}))


def read_checkpoint(path: Path) -> Checkpoint:
    """The state in `path`, if it is whole; one line that says what is wrong if not."""
    if not path.is_file():
        raise ModelFileError(f"{path}: no checkpoint there to resume from; start without --resume")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path}: damaged ({error}); restore a copy or start again with --overwrite") from None
    try:
        header = json.loads(metadata[FORMAT])
        facts, promised = dict(header["facts"]), header["sha256"]
    except (KeyError, ValueError, TypeError):
        raise ModelFileError(f"{path}: not a checkpoint of this release (no {FORMAT!r} in its header)") from None
    if promised != _digest(tensors, facts):
        raise ModelFileError(f"{path}: damaged (its sha256 differs); restore a copy or start again with --overwrite")
    return Checkpoint(tensors, facts)


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
