"""The scale estimator as files beside a model: `scale.json` and `scale.safetensors`.  No pickle.

scale.json: {"format": "seunet-scale", "version": 2, "mpp": 0.25, "limits": {"distance": …, "interval": […]},
             "tensors": {"sha256": …, "bytes": …}, "fitted_on": {…}}

With the templates of what a network's heads say, the version is 3, and there are the tensors `heads.center` … and
"heads": {"features": 15, "limits": {…}}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors.torch import save as tensor_bytes

from seunet.errors import ModelFileError
from seunet.limits import MPP_RANGE
from seunet.scale.estimator import INTERVAL_AT, HeadTemplates, Limits, ScaleEstimator
from seunet.scale.signatures import SIGNATURE_LENGTH
from seunet.scale.templates import GRID, KNOTS, Templates
from seunet.settings import Section, first_fault
from seunet.storage.atomic import write_bytes, write_text
from seunet.storage.files import sha256
from seunet.storage.tensors import read_config_bytes, read_tensors

FORMAT: Final = "seunet-scale"
VERSION: Final = 2
WITH_HEADS: Final = 3
CONFIG_NAME: Final = "scale.json"
TENSORS_NAME: Final = "scale.safetensors"
HEADS_PREFIX: Final = "heads."

MOST_FEATURES: Final = 3 * 64
"""Of the heads: three sizes of the image for each."""


class _LimitsEntry(Section, allow_inf_nan=False, strict=True):
    distance: float = Field(gt=0)
    interval: list[float] = Field(min_length=len(INTERVAL_AT), max_length=len(INTERVAL_AT))


class _HeadsEntry(Section, allow_inf_nan=False, strict=True):
    features: int = Field(ge=1, le=MOST_FEATURES)
    limits: _LimitsEntry


class _Config(Section, allow_inf_nan=False, strict=True):
    format: str
    version: int
    mpp: float = Field(ge=MPP_RANGE[0], le=MPP_RANGE[1])
    limits: _LimitsEntry
    tensors: dict[str, Any]
    fitted_on: dict[str, Any]
    heads: _HeadsEntry | None = None


def save_estimator(estimator: ScaleEstimator, folder: Path) -> None:
    """Write the two files atomically, the tensors first."""
    heads = estimator.heads
    arrays = _named(estimator.templates) | ({} if heads is None else _named(heads.templates, HEADS_PREFIX))
    data = tensor_bytes(arrays)
    config = {
        "format": FORMAT,
        "version": VERSION if heads is None else WITH_HEADS,
        "mpp": estimator.mpp,
        "limits": _plain(estimator.limits),
        "tensors": {"sha256": sha256(data), "bytes": len(data)},
        "fitted_on": dict(estimator.fitted_on),
    }
    if heads is not None:
        config["heads"] = {"features": len(heads.templates.center), "limits": _plain(heads.limits)}
    write_bytes(folder / TENSORS_NAME, data)
    write_text(folder / CONFIG_NAME, json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def has_estimator(folder: Path) -> bool:
    """Whether there is an estimator in a folder."""
    return (folder / CONFIG_NAME).is_file()


def load_estimator(folder: Path) -> ScaleEstimator:
    """The estimator in a folder; size, hash, names, shapes and types are compared with what they must be first."""
    config = _read_config(folder / CONFIG_NAME)
    expected = _shapes(SIGNATURE_LENGTH)
    if config.heads is not None:
        expected |= _shapes(config.heads.features, HEADS_PREFIX)
    tensors = read_tensors(folder / TENSORS_NAME, config.tensors, expected)
    heads = None
    if config.heads is not None:
        heads = HeadTemplates(_templates(tensors, HEADS_PREFIX), _limits(config.heads.limits))
    return ScaleEstimator(_templates(tensors), _limits(config.limits), config.mpp, config.fitted_on, heads)


def _shapes(features: int, prefix: str = "") -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of each tensor of templates with that many features."""
    shapes = {
        "center": (features,),
        "spread": (features,),
        "means": (len(GRID), features),
        "precisions": (len(KNOTS), features, features),
        "log_determinants": (len(KNOTS),),
    }
    return {prefix + name: (shape, torch.float32) for name, shape in shapes.items()}


def _named(templates: Templates, prefix: str = "") -> dict[str, torch.Tensor]:
    arrays = templates._asdict().items()
    return {prefix + name: torch.from_numpy(np.ascontiguousarray(values, np.float32)) for name, values in arrays}


def _templates(tensors: Mapping[str, torch.Tensor], prefix: str = "") -> Templates:
    return Templates(**{name: tensors[prefix + name].numpy().astype(np.float64) for name in Templates._fields})


def _plain(limits: Limits) -> dict[str, Any]:
    return {"distance": limits.distance, "interval": list(limits.interval)}


def _limits(entry: _LimitsEntry) -> Limits:
    return Limits(entry.distance, tuple(entry.interval))


def _read_config(path: Path) -> _Config:
    text = read_config_bytes(path)
    try:
        config = _Config.model_validate_json(text)
    except ValidationError as error:
        raise ModelFileError(f"{path}: {first_fault(error)}; fetch it again") from None
    if config.format != FORMAT or config.version not in (VERSION, WITH_HEADS):
        raise ModelFileError(
            f"{path}: {config.format!r} version {config.version}; "
            f"this release reads {FORMAT} {VERSION} and {WITH_HEADS}"
        )
    return config
