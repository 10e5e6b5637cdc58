"""Label planes in memory, and random ones to find objects in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from seunet.results import ArrayPlane as ArrayPlane
from seunet.results import Frame

Codes = NDArray[np.uint8]


def nuclei_frame(
    scale: float = 1.0, offset: tuple[int, int] = (0, 0), mpp: float | None = 0.5, regions: frozenset[int] = frozenset()
) -> Frame:
    """Two classes and a background."""
    names, colors = ("background", "nucleus", "Drüse «µ»"), ((0, 0, 0), (255, 214, 64), (0, 114, 178))
    return Frame(scale, *offset, mpp, names, colors, regions=regions)


def random_codes(random: np.random.Generator, height: int, width: int, codes: int = 3) -> Codes:
    """Blobs or noise of several classes, from single pixels to labyrinths with holes."""
    smooth = random.choice([0.0, 0.6, 1.5, 3.0])
    fields = [ndimage.gaussian_filter(random.standard_normal((height, width)), smooth) for _ in range(codes)]
    fields[0] = fields[0] + random.uniform(-1, 1) * float(np.std(fields[0]))
    codes_of_largest: Codes = np.argmax(fields, axis=0).astype(np.uint8)
    return codes_of_largest


def discs(height: int, width: int, circles: list[tuple[float, float, float]]) -> Codes:
    """Circles (row, column, radius) of code 1."""
    rows, columns = np.mgrid[:height, :width]
    codes = np.zeros((height, width), dtype=np.uint8)
    for row, column, radius in circles:
        codes[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = 1
    return codes
