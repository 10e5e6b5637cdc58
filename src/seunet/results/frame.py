"""Where a label plane lies in its slide, and what its codes mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from seunet.data.prepare.one_image import IGNORE_CODE
from seunet.errors import InputError

NOT_ANALYSED: Final = IGNORE_CODE
"""The code of pixels that could not be analysed, e.g. a corrupt region."""

MIN_SCALE: Final = 0.01
"""QuPath ≥ 0.6 rounds coordinates to hundredths on reading; two pixel edges must not fall together."""

Color = tuple[int, int, int]


@dataclass(frozen=True)
class Frame:
    """Working pixels (those of the label plane) → level-0 pixels and µm; codes → names and colours."""

    scale_to_level0: float
    """Level-0 pixels along the side of a working pixel."""
    offset_x: int
    offset_y: int
    """Level-0 place of the scanned part (`openslide.bounds-*`), which viewers take as their origin."""
    mpp: float | None
    """µm per working pixel, where known."""
    class_names: tuple[str, ...]
    class_colors: tuple[Color, ...]
    background: int | None = 0
    """The class that is not an object; None if every class is a tissue."""
    regions: frozenset[int] = frozenset()
    """Classes that are areas rather than things that are counted: outlined as annotations, never split."""
    slide_size: tuple[int, int] | None = None
    """Height and width of level 0, which label images are written on; None leaves them on the working pixels."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale_to_level0) and self.scale_to_level0 >= MIN_SCALE):
            raise InputError(f"`scale_to_level0` (={self.scale_to_level0}) must be a number from 0.01 up")
        if self.mpp is not None and not (math.isfinite(self.mpp) and self.mpp > 0):
            raise InputError(f"`mpp` (={self.mpp}) must be a positive number or None")
        if len(self.class_names) != len(self.class_colors) or not 0 < len(self.class_names) <= NOT_ANALYSED:
            raise InputError(
                f"{len(self.class_names)} class names and {len(self.class_colors)} colours: there must be as many of "
                f"both, 1 … {NOT_ANALYSED}"
            )

    @property
    def label_scale(self) -> float:
        """Level-0 pixels along the side of a pixel of a label image."""
        return self.scale_to_level0 if self.slide_size is None else 1.0

    @property
    def object_codes(self) -> tuple[int, ...]:
        """The classes of which objects are made: all but the background."""
        return tuple(code for code in range(len(self.class_names)) if code != self.background)

    def area_level0(self, pixels: float) -> float:
        """The area of so many working pixels in level-0 pixels."""
        return pixels * self.scale_to_level0**2

    def area_um2(self, pixels: float) -> float | None:
        """The area of so many working pixels in µm², where the size of a pixel is known."""
        return None if self.mpp is None else pixels * self.mpp**2
