"""The scale of a slide from its pixels: regions spread over it, one at a time in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seunet.errors import InputError
from seunet.images.image import Bounds, Image, RgbArray
from seunet.scale.estimator import ScaleEstimate, ScaleEstimator, shipped_estimator, too_small
from seunet.scale.heads import Sureness
from seunet.scale.regions import ARRAY_GRID, REGION_PX, Region, observe, spread_boxes, tissue_share

ENOUGH_REGIONS: Final = 9
ENOUGH_LOOKS: Final = 5
"""Regions, where a network looks at each of them: it costs more than all else, and says more."""
MOST_READS: Final = 96
"""Regions that are read to find those with tissue."""

MOST_UNREADABLE: Final = 8
"""Regions that cannot be read before the rest is not tried: each may take a decoder's time limit."""

WORTH_SEEING: Final = 0.25
"""The share of tissue from which on a region of a slide is looked at."""
LEAST_TISSUE: Final = 0.04
"""The same where no region has that much, as in fat, and a network looks as well."""


def estimate_slide(
    image: Image,
    mpp_of_training: float | None = None,
    estimator: ScaleEstimator | None = None,
    sureness: Sureness | None = None,
) -> ScaleEstimate:
    """How large structures are at level 0 of a slide: the median over up to nine regions with tissue.

    `sureness`: the heads of the network that the estimator is of; with their opinion, five regions are enough.
    """
    chosen = estimator or shipped_estimator()
    small = too_small(image.bounds.height_px, image.bounds.width_px)
    return small or chosen.estimate(_regions(image, sureness), mpp_of_training)


def _regions(image: Image, sureness: Sureness | None) -> Iterator[Region]:
    """Regions with tissue; what cannot be read is left out here, and reported by those who need every pixel."""
    found = unreadable = 0
    sparse: tuple[float, RgbArray] | None = None
    for box in _boxes(image.bounds.height_px, image.bounds.width_px):
        x, y = image.bounds.x + box.x, image.bounds.y + box.y
        try:
            pixels = image.read(0, x, y, box.width_px, box.height_px)
        except InputError:
            unreadable += 1
            if unreadable == MOST_UNREADABLE:
                return
            continue
        share = tissue_share(pixels)
        if share < WORTH_SEEING:
            if share >= (LEAST_TISSUE if sparse is None else sparse[0]):
                sparse = share, pixels
            continue
        yield observe(pixels, sureness)
        found += 1
        if found == (ENOUGH_REGIONS if sureness is None else ENOUGH_LOOKS):
            return
    if not found and sparse is not None and sureness is not None:
        yield observe(sparse[1], sureness)


def _boxes(height_px: int, width_px: int) -> Iterator[Bounds]:
    """The regions of an image that nine of them nearly cover; of a larger one, places spread ever more densely."""
    if max(height_px, width_px) <= ARRAY_GRID * REGION_PX:
        boxes = spread_boxes(height_px, width_px)
        yield from boxes[::2] + boxes[1::2]  # corners and middle first
        return
    width, height = min(REGION_PX, width_px), min(REGION_PX, height_px)
    for number in range(1, MOST_READS + 1):
        x, y = halton(number, 2) * (width_px - width), halton(number, 3) * (height_px - height)
        yield Bounds(round(x), round(y), width, height)


def halton(number: int, base: int) -> float:
    """The digits of `number` in `base`, mirrored at the point: fills 0 … 1 evenly, without chance.

    >>> [halton(number, 2) for number in (1, 2, 3, 4)]
    [0.5, 0.25, 0.75, 0.125]
    """
    result, unit = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        result += digit * unit
        unit /= base
    return result
