"""Which trained models are in the package."""

from __future__ import annotations

from seunet.pretrained import BUILT_IN


def built_in_models() -> list[str]:
    """Their names: those of their folders."""
    return sorted(path.parent.name for path in BUILT_IN.glob("*/config.json"))
