"""seunet: segment H&E histopathology images at any magnification, told or not told which one it is.

The names below are loaded on first use, so that `import seunet` is quick and pulls in no heavy library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seunet.kernels.dispatch import kernel_backend as kernel_backend
    from seunet.maths.fusion import fuse as fuse
    from seunet.models.files import load as load
    from seunet.models.registry import create_model as create_model
    from seunet.models.registry import list_models as list_models
    from seunet.scale.estimator import estimate_scale as estimate_scale
    from seunet.segmentation.segment_array import segment as segment

__version__ = "0.1.0"

_HOME = {
    "create_model": "seunet.models.registry",
    "list_models": "seunet.models.registry",
    "load": "seunet.models.files",
    "estimate_scale": "seunet.scale.estimator",
    "fuse": "seunet.maths.fusion",
    "kernel_backend": "seunet.kernels.dispatch",
    "segment": "seunet.segmentation.segment_array",
}

__all__ = ["__version__", "create_model", "estimate_scale", "fuse", "kernel_backend", "list_models", "load", "segment"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'seunet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
