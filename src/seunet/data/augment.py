"""What happens to a window before a network sees it: a pure function of (seed, epoch, index)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from seunet.data.optics import Optics, OpticsShares, Share, draw_optics
from seunet.data.stain_mixing import Mixing, draw_mixing
from seunet.settings import Section


class Augmentation(Section):
    """What may be varied.  Scale is off: a scale-equivariant network is not shown other scales."""

    flips: bool = True
    shift_px: int = Field(default=0, ge=0)
    crop_px: int | None = Field(default=None, ge=1)
    """The side of a square cut from the window at a random place; None is the whole window."""
    scale_range: tuple[float, float] | None = None
    stain_jitter: float = Share
    """By what share the optical density of each colour is made stronger or weaker: other stains, other scanners."""
    turns: bool = False
    """Quarter turns: with the flips, all eight ways to lay a square on itself."""
    averaging: float = Share
    """The share of shrunk windows that average over the pixels that become one, as a scanner at low power does; the
    others take the nearest few, as the paper does."""
    stain_mix: float = Field(default=0.0, ge=0, le=2)
    """Up to 2^±this times as much of haematoxylin and of eosin, and hues that move along (`data.stain_mixing`)."""
    optics: OpticsShares = OpticsShares()
    """Blur, sharpening, fewer pixels, noise and JPEG (`data.optics`)."""

    @field_validator("scale_range")
    @classmethod
    def _rises(cls, found: tuple[float, float] | None) -> tuple[float, float] | None:
        if found is not None and not 0.1 <= found[0] <= found[1] <= 10:
            raise ValueError("must rise within 0.1–10")
        return found


OFFSET_SHARE = 0.2
"""Of the jitter: by how much the optical density of the empty glass may move."""

NONE = Augmentation(flips=False)
FLIPS = Augmentation()
FLIPS_AND_SHIFT = Augmentation(shift_px=128)


class Draw(NamedTuple):
    """Flips, a shift of the window's origin, a magnification (2: half as much, twice as large), where in the window a
    crop lies (0: left or top, 1: right or bottom), and gain and offset of the optical density of red, green, blue."""

    flip_x: bool
    flip_y: bool
    shift_x: int
    shift_y: int
    scale: float
    crop_x: float
    crop_y: float
    gains: tuple[float, ...]
    offsets: tuple[float, ...]


def draw(
    augmentation: Augmentation,
    seed: int,
    epoch: int,
    index: int,
    scale_range: tuple[float, float] | None = None,
    foreign_share: float = 0.0,
) -> Draw:
    """The draw for a window in an epoch: no state, so workers, order and restarts cannot change it.

    `scale_range` narrows the magnifications for this draw alone, but in `foreign_share` of the draws.
    """
    random = np.random.default_rng([seed, epoch, index])
    flip_x, flip_y = (bool(bit) for bit in random.integers(0, 2, size=2))
    reach = augmentation.shift_px
    shift_x, shift_y = (int(step) for step in random.integers(-reach, reach + 1, size=2))
    position = random.random()
    crop_x, crop_y = (float(place) for place in random.random(2))
    jitter = augmentation.stain_jitter
    gains = tuple(float(1 + jitter * step) for step in random.uniform(-1, 1, 3))
    offsets = tuple(float(OFFSET_SHARE * jitter * step) for step in random.uniform(-1, 1, 3))
    own = scale_range is not None and random.random() >= foreign_share
    octaves = scale_range if own else augmentation.scale_range
    scale = 1.0
    if octaves is not None:
        low, high = octaves
        scale = float(low * (high / low) ** position)  # uniform in octaves
    flips = augmentation.flips
    return Draw(flip_x and flips, flip_y and flips, shift_x, shift_y, scale, crop_x, crop_y, gains, offsets)


class Variation(NamedTuple):
    """What the first runs did not have: a quarter turn, whether shrinking averages, other stains, other optics."""

    turned: bool
    averages: bool
    mixing: Mixing | None
    optics: Optics


LATER = 1
"""Drawn from another stream than `draw`, so that the windows of older runs stay as they were."""


def draw_variation(augmentation: Augmentation, seed: int, epoch: int, index: int) -> Variation:
    """The rest of the draw for a window in an epoch."""
    random = np.random.default_rng([seed, epoch, index, LATER])
    turned, averages = random.random(2) < (0.5 * augmentation.turns, augmentation.averaging)
    mixing = draw_mixing(augmentation.stain_mix, random) if augmentation.stain_mix else None
    optics = draw_optics(augmentation.optics, random) if augmentation.optics != OpticsShares() else Optics()
    return Variation(bool(turned), bool(averages), mixing, optics)


def octaves_outside(scale: float, band: tuple[float, float]) -> float:
    """By how many octaves a magnification lies outside a range; 0 inside.

    Examples:
        >>> octaves_outside(0.5, (1.0, 1.5)), octaves_outside(1.2, (1.0, 1.5)), octaves_outside(6.0, (1.0, 1.5))
        (1.0, 0.0, 2.0)
    """
    low, high = band
    return max(0.0, math.log2(low / scale), math.log2(scale / high))


def stain_table(chance: Draw) -> NDArray[np.uint8]:
    """What each value of each colour becomes, [256, 3]: −ln I′ = gain · (−ln I) + offset, so I′ = I^gain · e^−offset.

    Black stays black; an offset is a change of the lamp or of the glass.
    """
    light = np.arange(256)[:, None] / 255
    changed = light ** np.array(chance.gains) * np.exp(-np.array(chance.offsets))
    table: NDArray[np.uint8] = np.clip(np.rint(255 * changed), 0, 255).astype(np.uint8)
    return table


def epoch_order(length: int, seed: int, epoch: int) -> list[int]:
    """The order in which an epoch visits the windows."""
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(length).tolist()
    return order
