"""Tensors in safetensors files, compared with what is promised of them before anything is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from seunet.errors import ModelFileError
from seunet.limits import MAX_CONFIG_BYTES, MAX_MODEL_BYTES
from seunet.storage.files import read_limited, sha256

_DTYPES: Final = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "I64": torch.int64}


def read_config_bytes(path: Path) -> bytes:
    """The config beside the tensors."""
    remedies = (f"the folder needs {path.name}", "this is no model config")
    return read_limited(path, MAX_CONFIG_BYTES, remedies, kind=ModelFileError, where=str(path))


Expected = dict[str, tuple[tuple[int, ...], torch.dtype]]
"""Names of tensors, with the shape and type of each."""


def read_tensors(path: Path, promised: dict[str, Any], expected: Expected) -> dict[str, Tensor]:
    """The tensors of a file whose size and hash are those promised and whose header declares what is expected."""
    data = _read_bytes(path, promised)
    try:
        _compare(path, expected, _declared(data))
        return load(data)
    except (SafetensorError, ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path}: not a safetensors file; fetch it again") from None


def _read_bytes(path: Path, promised: dict[str, Any]) -> bytes:
    try:
        size = path.stat().st_size
        if size != promised.get("bytes") or size > MAX_MODEL_BYTES:
            raise ModelFileError(
                f"{path}: {size:,} bytes where the config promises {promised.get('bytes')!r}; truncated? fetch it again"
            )
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror}); fetch the model again") from None
    data = read_limited(path, size, ("fetch the model again",) * 2, kind=ModelFileError, where=str(path))
    if sha256(data) != promised.get("sha256"):
        raise ModelFileError(f"{path}: its sha256 is not the config's; the file was altered or damaged: fetch it again")
    return data


def _declared(data: bytes) -> dict[str, tuple[tuple[int, ...], torch.dtype | None]]:
    """What the header declares: 8 bytes of length, then JSON.

    By hand: the library has it only together with the tensors of a file, and those are not to be made before it fits.
    """
    length = int.from_bytes(data[:8], "little")
    if not 0 < length <= min(len(data) - 8, MAX_CONFIG_BYTES):
        raise ValueError
    declared = json.loads(data[8 : 8 + length])
    declared.pop("__metadata__", None)
    return {key: (tuple(entry["shape"]), _DTYPES.get(entry["dtype"])) for key, entry in declared.items()}


def _compare(path: Path, expected: Expected, found: dict[str, tuple[tuple[int, ...], torch.dtype | None]]) -> None:
    """Refuse weights that are not those of the config, naming the first three that differ."""
    wrong = [f"{key} is missing" for key in expected if key not in found]
    wrong += [f"{key} is not part of the model" for key in found if key not in expected]
    wrong += [
        f"{key} is {list(found[key][0])} {found[key][1]}, not {list(shape)} {dtype}"
        for key, (shape, dtype) in expected.items()
        if key in found and found[key] != (shape, dtype)
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ModelFileError(f"{path}: does not fit the config: {'; '.join(wrong[:3])}{more}")
