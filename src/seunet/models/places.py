"""Where a model is: a folder of the user's, the package, or a repository on the hub; and its config, read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from seunet.errors import ModelFileError
from seunet.hub.fetch import Wanted, fetch_files
from seunet.hub.repository import PREFIX, is_on_hub, parsed
from seunet.limits import MAX_MODEL_BYTES
from seunet.pretrained import BUILT_IN, built_in_models
from seunet.scale.files import CONFIG_NAME as SCALE_CONFIG_NAME
from seunet.scale.files import TENSORS_NAME as SCALE_TENSORS_NAME
from seunet.storage.tensors import read_config_bytes

FORMAT: Final = "seunet-model"
VERSION: Final = 1
CONFIG_NAME: Final = "config.json"
WEIGHTS_NAME: Final = "model.safetensors"
CARD_NAME: Final = "README.md"
ESTIMATOR_NAMES: Final = (SCALE_CONFIG_NAME, SCALE_TENSORS_NAME)


class Place(NamedTuple):
    """The folder of a model and, of one that was fetched, its repository with the commit."""

    folder: Path
    source: str | None = None


def model_place(name_or_folder: str | os.PathLike[str]) -> Place:
    """Where a model is; a folder of the user's goes before a model of the package with that name."""
    if is_on_hub(name_or_folder):
        optional = (*ESTIMATOR_NAMES, CARD_NAME)
        wanted = Wanted(CONFIG_NAME, optional, WEIGHTS_NAME, check=read_config, limit_bytes=MAX_MODEL_BYTES)
        fetched = fetch_files(parsed(name_or_folder), wanted)
        return Place(fetched.folder, str(fetched.repository))
    place = Path(name_or_folder)
    if place.is_dir():
        return Place(place)
    if place.name == os.fspath(name_or_folder) and (BUILT_IN / place / CONFIG_NAME).is_file():
        return Place(BUILT_IN / place)
    shipped = ", ".join(built_in_models())
    raise ModelFileError(
        f"{place}: no such model folder; give one that `save_pretrained` wrote, or a model of the package ({shipped}), "
        f"or {PREFIX}owner/name"
    )


def model_folder(name_or_folder: str | os.PathLike[str]) -> Path:
    """The folder of a model; one on the hub is fetched."""
    return model_place(name_or_folder).folder


def pinned_name(name_or_folder: str) -> str:
    """The name of the same weights for ever: a repository on the hub is named with the commit it is at now."""
    return model_place(name_or_folder).source or name_or_folder


def read_config(path: Path) -> dict[str, Any]:
    """The config of a model, of a format and version that are ours."""
    text = read_config_bytes(path)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path}: not JSON; fetch the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelFileError(f'{path}: not a seunet model (no "format": "{FORMAT}")')
    if config.get("version") != VERSION:
        raise ModelFileError(f"{path}: format version {config.get('version')!r}; this release reads {VERSION}")
    return config
