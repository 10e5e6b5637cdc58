"""What the outline of an object along pixel edges says about its shape."""

from __future__ import annotations

import math
from typing import Final

ISOTROPIC: Final = math.pi / 8 * (1 + math.sqrt(2))
"""Mean of true length / length along eight directions, over all directions of a line."""


def outline_length(edges: int, corners: int) -> float:
    """The length in pixels of the smooth outline that a ring of pixel edges with so many corners stands for.

    Going through the middles of the edges, two edges in line give length 1 and two around a corner √½: a line along
    eight directions, too long by a factor that depends on its direction and is 1/0.948 in the mean.
    """
    return ISOTROPIC * ((edges - corners) + corners * math.sqrt(0.5))


def circularity(area: float, length: float) -> float:
    """4π · area / length²: 1 for a disc, less for anything else; what pixels feign beyond that is cut off."""
    return min(1.0, 4 * math.pi * area / length**2)
