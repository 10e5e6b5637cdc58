"""Images at other scales, in other stains and less sharp: what a scale estimator is fitted on.

Every sample is a function of the image, its name and the sample's number; nothing else is random.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.data.optics import blurred, sharpened, through_jpeg
from seunet.maths.rescaling import rescale_pixels
from seunet.maths.stain import START, with_gains
from seunet.scale.heads import Sureness
from seunet.scale.regions import MIN_SIDE_PX, Region, observe, spread_boxes

RgbArray = NDArray[np.uint8]
FloatArray = NDArray[np.float64]

PLAIN_SCALES: Final = tuple(0.25 * 2 ** (step / 2) for step in range(9))
SCALE_RANGE: Final = (0.16, 6.2)
"""Beyond what is asked for, 0.25 to 4: an estimate that errs there is still within what was seen."""
SMALLEST_PX: Final = 160
LARGEST_PX: Final = 768
"""Per side of a changed part; half of the parts are as large as that, half anything down to the smallest."""
WHOLE_PX: Final = 1280
"""Per side of an image that is only rescaled: its middle, where that would be larger."""
LOOKED_AT_SCALES: Final = PLAIN_SCALES[::2]
LOOKED_AT_PARTS: Final = 2
"""The first changed parts of an image; a look of the network costs more than all else."""
HAEMATOXYLIN: Final = (0.65, 1.4)
EOSIN: Final = (0.6, 2.0)
"""Gains of the optical densities of the stains: pale to dark laboratories."""
STAINS: Final = START / np.linalg.norm(START, axis=1, keepdims=True)


class Sample(NamedTuple):
    """An image `scale` times as large as the one it was made from, and what else was done to it."""

    pixels: RgbArray
    scale: float
    changes: tuple[str, ...]


class Observed(NamedTuple):
    """All regions of all samples of one image."""

    name: str
    moments: FloatArray
    tissue: FloatArray
    covariances: FloatArray
    scales: FloatArray
    """Relative to the resolution that the estimator is fitted for."""
    sample: FloatArray
    """Which sample a region is of."""
    plain: FloatArray
    """1 where the sample is the image itself, only rescaled."""
    heads: FloatArray
    """How sure the heads of a network are, [regions, features]; NaN where it has not looked."""

    @property
    def weights(self) -> FloatArray:
        """A sample counts the same however many regions it has."""
        _, which, counts = np.unique(self.sample, return_inverse=True, return_counts=True)
        return 1.0 / counts[which]


def observed(
    name: str, pixels: RgbArray, own_scale: float = 1.0, count: int = 100, sureness: Sureness | None = None
) -> Observed:
    """The image at nine scales, those below 1 both with averaging and without, and `count` parts of it changed.

    `own_scale`: how many times as large structures are in the image as at the resolution that is fitted for.
    `sureness`: a network, which looks at some of them.
    """
    rows: list[tuple[Region, float, int, bool]] = []
    for number, scale in enumerate(PLAIN_SCALES):
        for averaged in (False, True) if scale < 1 else (False,):
            shown = rescale_pixels(_middle(pixels, scale / own_scale), scale / own_scale, averaged)
            place = number + len(PLAIN_SCALES) * averaged
            looks = scale in LOOKED_AT_SCALES and (averaged or scale >= 1)
            rows += [(region, scale, place, True) for region in regions_of(shown, sureness if looks else None)]
    for number, sample in enumerate(varied(name, pixels, count, own_scale)):
        seen = regions_of(sample.pixels, sureness if number < LOOKED_AT_PARTS else None)
        rows += [(region, sample.scale * own_scale, 1000 + number, False) for region in seen]
    regions = [row[0] for row in rows]
    scales, numbers, plain = (np.array([row[place] for row in rows], dtype=np.float64) for place in (1, 2, 3))
    return Observed(
        name,
        np.array([region.moments for region in regions]),
        np.array([region.tissue for region in regions]),
        np.array([region.covariance for region in regions]),
        scales,
        numbers,
        plain,
        _head_rows(regions),
    )


def _head_rows(regions: list[Region]) -> FloatArray:
    length = max((len(region.heads) for region in regions if region.heads is not None), default=0)
    return np.array([np.full(length, np.nan) if region.heads is None else region.heads for region in regions])


def regions_of(pixels: RgbArray, sureness: Sureness | None = None) -> list[Region]:
    """What the estimator looks at; none where an image is too small for it."""
    if min(pixels.shape[:2]) < MIN_SIDE_PX:
        return []
    boxes = spread_boxes(*pixels.shape[:2])
    parts = (pixels[box.y : box.y + box.height_px, box.x : box.x + box.width_px] for box in boxes)
    return [observe(part, sureness) for part in parts]


def _middle(pixels: RgbArray, scale: float) -> RgbArray:
    height, width = (min(side, max(round(WHOLE_PX / scale), 1)) for side in pixels.shape[:2])
    y, x = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[y : y + height, x : x + width]


def varied(name: str, pixels: RgbArray, count: int, own_scale: float = 1.0) -> Iterator[Sample]:
    """`count` parts of the image at scales uniform in octaves; each change is made in some of them."""
    for number in range(count):
        random = np.random.default_rng([zlib.crc32(name.encode()), number])
        scale = float(np.exp(random.uniform(*np.log(SCALE_RANGE)))) / own_scale
        yield _varied(pixels, scale, random)


def _varied(pixels: RgbArray, scale: float, random: np.random.Generator) -> Sample:
    part, changes = _part(pixels, scale, random), []
    if random.random() < 0.6:
        gains = tuple(float(np.exp(random.uniform(*np.log(span)))) for span in (HAEMATOXYLIN, EOSIN))
        part = with_gains(part, STAINS, (gains[0], gains[1]))
        changes.append("stain")
    # The microscope, before the image is rescaled: how sharp it is says nothing of the scale.
    optics = random.random()
    if optics < 0.5:
        part = blurred(part, float(random.uniform(0.3, 1.8)))
        changes.append("optics")
    elif optics < 0.65:
        part = sharpened(part, float(random.uniform(0.3, 1.0)))
        changes.append("sharpened")
    if random.random() < 0.3:
        part = through_jpeg(part, int(random.integers(50, 92)))
        changes.append("source jpeg")
    averaged = scale < 1 and random.random() < 0.5
    part = rescale_pixels(part, scale, averaged)
    changes += ["averaged"] * averaged
    # The scanner, after: its sharpening, its noise and its JPEG are of the pixels as they are kept, at any scale.
    camera = random.random()
    if camera < 0.25:
        part = blurred(part, float(random.uniform(0.3, 1.0)))
        changes.append("blur")
    elif camera < 0.6:
        part = sharpened(part, float(random.uniform(0.3, 1.5)))
        changes.append("sharpened after")
    if random.random() < 0.4:
        noise = random.normal(0, random.uniform(2, 8), part.shape)
        part = np.clip(np.rint(part + noise), 0, 255).astype(np.uint8)
        changes.append("noise")
    if random.random() < 0.4:
        part = through_jpeg(part, int(random.integers(50, 95)))
        changes.append("jpeg")
    return Sample(part, scale, tuple(changes))


def _part(pixels: RgbArray, scale: float, random: np.random.Generator) -> RgbArray:
    """A square that is about as large as asked for once it is rescaled."""
    height, width = pixels.shape[:2]
    largest = min(min(height, width) * scale, LARGEST_PX)
    smallest = min(SMALLEST_PX, largest)
    wanted = float(np.exp(random.uniform(np.log(smallest), np.log(largest)))) if random.random() < 0.5 else largest
    side = min(max(int(wanted / scale), 1), height, width)
    x, y = random.integers(0, width - side + 1), random.integers(0, height - side + 1)
    return np.ascontiguousarray(pixels[y : y + side, x : x + side])
