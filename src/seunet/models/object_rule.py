"""What one object is, wherever objects are made of a map of classes: at home, and in what is exported."""

from __future__ import annotations

from typing import Final

NECK: Final = 0.85
SLACK_PX: Final = 1.0
"""Objects are parted where they narrow to less than this share of the smaller part, and by this many pixels.  Chosen
on the training images of MoNuSeg (results/benchmarks/splitting.json)."""
MIN_CORE_PX: Final = 12
"""What is left of an object between rims and is smaller is part of a neighbour, not an object."""
MIN_AREA_UM2: Final = 4.0
"""Of the smallest: a disc of 2.3 µm across, smaller than any nucleus, larger than most specks (docs/decisions/0043)."""
