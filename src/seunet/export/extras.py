"""Libraries that only exports need: found, or one line that says how to get them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from seunet.errors import InputError

EXTRA_OF: Final = {
    "onnx": "export",
    "onnxruntime": "export",
    "openvino": "export",
    "bioimageio": "export",
    "huggingface_hub": "hub",
}


def needed(library: str) -> None:
    """Refuse in one line where `library` is not installed."""
    if find_spec(library) is None:
        raise InputError(f"{library} is not installed; get it by: pip install 'seunet[{EXTRA_OF[library]}]'")
