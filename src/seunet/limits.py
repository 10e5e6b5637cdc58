"""Ceilings that keep a wrong number in a file or an argument from taking the machine down."""

from __future__ import annotations

from typing import Final

MAX_FILTER_RADIUS: Final = 512
"""Pixels; a filter of 1025 taps a side.  σ ≤ 256 at the paper's two standard deviations."""

MAX_ORDER: Final = 8
MAX_SCALES: Final = 64
MAX_CHANNELS: Final = 65_536
MAX_CLASSES: Final = 4_096
MAX_PARAMETERS: Final = 1_000_000_000
MAX_CONFIG_BYTES: Final = 1_000_000
MAX_MODEL_BYTES: Final = 8_000_000_000
