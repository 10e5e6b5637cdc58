"""Where a model is: a folder of the user's, the package, or a repository on the hub; and its config, read."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from seunet.errors import ModelFileError, nearest_known
from seunet.hub.fetch import Wanted, fetch_files
from seunet.hub.repository import PREFIX, is_on_hub, parsed
from seunet.limits import MAX_MODEL_BYTES
from seunet.models.built_in import built_in_models
from seunet.pretrained import BUILT_IN
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


class FolderNotUsed(UserWarning):
    """A model in the working folder has the name of one of the package."""


def fetched_place(name: str) -> Place:
    """Where the model of a repository is; the hub is asked each time."""
    optional = (*ESTIMATOR_NAMES, CARD_NAME)
    wanted = Wanted(CONFIG_NAME, optional, WEIGHTS_NAME, check=read_config, limit_bytes=MAX_MODEL_BYTES)
    fetched = fetch_files(parsed(name), wanted)
    return Place(fetched.folder, str(fetched.repository))


def model_place(name_or_folder: str | os.PathLike[str], fetch: Callable[[str], Place] = fetched_place) -> Place:
    """Where a model is; one on the hub is brought by `fetch`.

    The name of a model of the package means that model in every working folder, whatever lies there: `export nuclei -o
    nuclei` leaves a folder that is no model.  A folder of that name is given as `./nuclei`, or as a `Path`.
    """
    place = Path(name_or_folder)
    is_path = isinstance(name_or_folder, os.PathLike) and place.is_dir()
    if os.fspath(name_or_folder) in built_in_models() and not is_path:
        if _holds_model(place):
            # At this line, so that it is said once: Python repeats no warning of one place.
            text = f"{place}: the model of the package is used; for the folder of that name write ./{place}"
            warnings.warn(text, FolderNotUsed, stacklevel=1)
        return Place(BUILT_IN / place)
    if is_on_hub(name_or_folder):
        return fetch(os.fspath(name_or_folder))
    if place.is_dir():
        if not (place / CONFIG_NAME).is_file() and _holds_model(place / "model"):
            raise ModelFileError(f"{place}: is the folder of a run; its model is {place / 'model'}")
        return Place(place)
    shipped = built_in_models()
    meant = nearest_known(os.fspath(name_or_folder).lower(), shipped, likeness=0.6).removesuffix("?")
    raise ModelFileError(
        f"{place}: no such model folder{meant}; give one that `save_pretrained` wrote, or a model of the package "
        f"({', '.join(shipped)}), or {PREFIX}owner/name"
    )


def _holds_model(folder: Path) -> bool:
    return (folder / CONFIG_NAME).is_file() and (folder / WEIGHTS_NAME).is_file()


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
