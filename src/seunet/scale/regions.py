"""What the scale estimator sees of a part of an image: its scale-space moments over tissue, and its colours."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import Bounds, RgbArray
from seunet.scale.heads import Sureness, head_profile, is_tissue
from seunet.scale.moments import block_means, block_moments
from seunet.scale.signatures import red_density

REGION_PX: Final = 1024
WHOLE_PX: Final = 1280
"""The longest side of an image that is one region; a larger one is sampled."""

ARRAY_GRID: Final = 3
"""Regions along a side of a large image in memory, at most."""

MIN_SIDE_PX: Final = 128
"""Below this, σ of half a nucleus at s = 4 no longer fits."""

TISSUE_SHARE: Final = 0.5
"""Of a block, from which on it counts."""

BLACK: Final = 90
"""No colour of a pixel reaches this: pigment or ink, not a stain; such pixels do not count where a network looks."""

SAMPLE_STEP: Final = 4
"""Tissue and colours are looked at on every fourth pixel of every fourth row."""

_DENSITY: Final = red_density()


class Region(NamedTuple):
    """`moments` [σ, moments] are means over the blocks with tissue; NaN where there are none."""

    moments: NDArray[np.float64]
    tissue: float
    """The share of blocks with tissue."""
    covariance: NDArray[np.float64]
    """Of red, green and blue optical density over tissue, [3, 3]."""
    heads: NDArray[np.float64] | None = None
    """How sure the heads of a network are (`heads.py`), where one has looked."""


def checked_rgb(image: object) -> RgbArray:
    """The image, if it is one."""
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise InputError(
            f"`image` (={'×'.join(str(side) for side in pixels.shape) or 'a number'}, {pixels.dtype}) must be "
            "height × width × 3 of uint8; convert it to 8-bit RGB"
        )
    return pixels


def spread_boxes(height_px: int, width_px: int) -> list[Bounds]:
    """The image as one region, or up to 3 × 3 regions spread evenly over a larger one."""
    return [Bounds(x, y, width, height) for y, height in _spread(height_px) for x, width in _spread(width_px)]


def tissue_share(rgb: RgbArray) -> float:
    """The share of pixels that are tissue."""
    return float(is_tissue(rgb[::SAMPLE_STEP, ::SAMPLE_STEP]).mean())


def observe(rgb: RgbArray, sureness: Sureness | None = None) -> Region:
    """The region of these pixels [height, width, 3], looked at by a network as well where one is given."""
    sample = rgb[::SAMPLE_STEP, ::SAMPLE_STEP]
    tissue = is_tissue(sample)
    moments = block_moments(_DENSITY[rgb[..., 0]])
    shares = block_means(tissue.astype(np.float32), (moments.shape[0], moments.shape[1]))
    # In fat no block is half full: where a network looks as well, the fullest ones are enough.
    sparse = sureness is not None and 0 < shares.max() < TISSUE_SHARE
    counted = shares >= (shares.max() / 2 if sparse else TISSUE_SHARE)
    means = moments[counted].mean(axis=0) if counted.any() else np.full(moments.shape[2:], np.nan)
    heads = None if sureness is None or not counted.any() else head_profile(rgb, sureness)
    stained = tissue if sureness is None else tissue & (sample.max(axis=2) >= BLACK)
    return Region(means, float(counted.mean()), _covariance(sample[stained]), heads)


def _covariance(pixels: RgbArray) -> NDArray[np.float64]:
    if len(pixels) < 2:
        return np.zeros((3, 3))
    return np.asarray(np.cov(_DENSITY[pixels].T.astype(np.float64)))


def _spread(length_px: int) -> list[tuple[int, int]]:
    """Start and length of the regions along one side."""
    if length_px <= WHOLE_PX:
        return [(0, length_px)]
    count = min(ARRAY_GRID, -(-length_px // REGION_PX))
    gaps = np.linspace(0, length_px - REGION_PX, count)
    return [(round(start), REGION_PX) for start in gaps]
