"""Libraries that only exports need: found, or one line that says how to get them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from seunet.errors import InputError

PACKAGES: Final = {"bioimageio": "bioimageio.spec"}
"""Names of packages where they are not those of their modules."""


def needed(library: str) -> None:
    """Refuse in one line where `library` is not installed."""
    if find_spec(library) is None:
        raise InputError(f"{library} is not installed; get it by: pip install {PACKAGES.get(library, library)}")
