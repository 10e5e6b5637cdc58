"""What happens to a window before a network sees it: a pure function of (seed, epoch, index)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seunet.errors import InputError


@dataclass(frozen=True)
class Augmentation:
    """What may be varied.  Scale is off: a scale-equivariant network is not shown other scales."""

    flips: bool = True
    shift_px: int = 0
    scale_range: tuple[float, float] | None = None
    crop_px: int | None = None
    """The side of a square cut from the window at a random place; None is the whole window."""

    def __post_init__(self) -> None:
        if self.shift_px < 0:
            raise InputError(f"`shift_px` (={self.shift_px}) must be 0 or more")
        if self.crop_px is not None and self.crop_px < 1:
            raise InputError(f"`crop_px` (={self.crop_px}) must be 1 or more")
        if self.scale_range is not None:
            low, high = self.scale_range
            if not 0.1 <= low <= high <= 10:
                raise InputError(f"`scale_range` (={low:g}, {high:g}) must rise within 0.1–10")


NONE = Augmentation(flips=False)
FLIPS = Augmentation()
FLIPS_AND_SHIFT = Augmentation(shift_px=128)


class Draw(NamedTuple):
    """Flips, a shift of the window's origin, a magnification (2: half as much, twice as large), and where in the
    window a crop lies (0: left or top, 1: right or bottom)."""

    flip_x: bool
    flip_y: bool
    shift_x: int
    shift_y: int
    scale: float
    crop_x: float
    crop_y: float


def draw(augmentation: Augmentation, seed: int, epoch: int, index: int) -> Draw:
    """The draw for a window in an epoch: no state, so workers, order and restarts cannot change it."""
    random = np.random.default_rng([seed, epoch, index])
    flip_x, flip_y = (bool(bit) for bit in random.integers(0, 2, size=2))
    reach = augmentation.shift_px
    shift_x, shift_y = (int(step) for step in random.integers(-reach, reach + 1, size=2))
    position = random.random()
    scale = 1.0
    if augmentation.scale_range is not None:
        low, high = augmentation.scale_range
        scale = float(low * (high / low) ** position)  # uniform in octaves
    crop_x, crop_y = (float(place) for place in random.random(2))
    flips = augmentation.flips
    return Draw(flip_x and flips, flip_y and flips, shift_x, shift_y, scale, crop_x, crop_y)


def epoch_order(length: int, seed: int, epoch: int) -> list[int]:
    """The order in which an epoch visits the windows."""
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(length).tolist()
    return order
