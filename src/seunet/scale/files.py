"""The scale estimator as files beside a model: `scale.json` and `scale.safetensors`.  No pickle.

scale.json: {"format": "seunet-scale", "version": 2, "mpp": 0.25, "limits": {"distance": …, "interval": […]},
             "tensors": {"sha256": …, "bytes": …}, "fitted_on": {…}}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors.torch import save as tensor_bytes

from seunet.errors import ModelFileError
from seunet.limits import MPP_RANGE
from seunet.scale.estimator import INTERVAL_AT, Limits, ScaleEstimator
from seunet.scale.signatures import SIGNATURE_LENGTH
from seunet.scale.templates import GRID, KNOTS, Templates
from seunet.settings import Section, first_fault
from seunet.storage.atomic import write_bytes, write_text
from seunet.storage.files import sha256
from seunet.storage.tensors import read_config_bytes, read_tensors

FORMAT: Final = "seunet-scale"
VERSION: Final = 2
CONFIG_NAME: Final = "scale.json"
TENSORS_NAME: Final = "scale.safetensors"

_SHAPES: Final = {
    "center": (SIGNATURE_LENGTH,),
    "spread": (SIGNATURE_LENGTH,),
    "means": (len(GRID), SIGNATURE_LENGTH),
    "precisions": (len(KNOTS), SIGNATURE_LENGTH, SIGNATURE_LENGTH),
    "log_determinants": (len(KNOTS),),
}


class _LimitsEntry(Section, allow_inf_nan=False, strict=True):
    distance: float = Field(gt=0)
    interval: list[float] = Field(min_length=len(INTERVAL_AT), max_length=len(INTERVAL_AT))


class _Config(Section, allow_inf_nan=False, strict=True):
    format: str
    version: int
    mpp: float = Field(ge=MPP_RANGE[0], le=MPP_RANGE[1])
    limits: _LimitsEntry
    tensors: dict[str, Any]
    fitted_on: dict[str, Any]


def save_estimator(estimator: ScaleEstimator, folder: Path) -> None:
    """Write the two files atomically, the tensors first."""
    arrays = estimator.templates._asdict()
    data = tensor_bytes({name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float32)) for name in _SHAPES})
    config = {
        "format": FORMAT,
        "version": VERSION,
        "mpp": estimator.mpp,
        "limits": {"distance": estimator.limits.distance, "interval": list(estimator.limits.interval)},
        "tensors": {"sha256": sha256(data), "bytes": len(data)},
        "fitted_on": dict(estimator.fitted_on),
    }
    write_bytes(folder / TENSORS_NAME, data)
    write_text(folder / CONFIG_NAME, json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def has_estimator(folder: Path) -> bool:
    """Whether there is an estimator in a folder."""
    return (folder / CONFIG_NAME).is_file()


def load_estimator(folder: Path) -> ScaleEstimator:
    """The estimator in a folder; size, hash, names, shapes and types are compared with what they must be first."""
    config = _read_config(folder / CONFIG_NAME)
    expected = {name: (shape, torch.float32) for name, shape in _SHAPES.items()}
    tensors = read_tensors(folder / TENSORS_NAME, config.tensors, expected)
    templates = Templates(**{name: tensor.numpy().astype(np.float64) for name, tensor in tensors.items()})
    limits = Limits(config.limits.distance, tuple(config.limits.interval))
    return ScaleEstimator(templates, limits, config.mpp, config.fitted_on)


def _read_config(path: Path) -> _Config:
    text = read_config_bytes(path)
    try:
        config = _Config.model_validate_json(text)
    except ValidationError as error:
        raise ModelFileError(f"{path}: {first_fault(error)}; fetch it again") from None
    if (config.format, config.version) != (FORMAT, VERSION):
        raise ModelFileError(
            f"{path}: {config.format!r} version {config.version}; this release reads {FORMAT} {VERSION}"
        )
    return config
