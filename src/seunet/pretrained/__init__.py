"""Trained models that ship with the package: a folder each, and no code."""

from pathlib import Path
from typing import Final

BUILT_IN: Final = Path(__file__).parent
"""Models that ship with the package, by the names of their folders."""
