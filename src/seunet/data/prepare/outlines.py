"""Outlines → an instance map, with everything that had to be decided counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.data.formats.imagescope import Region
from seunet.errors import InputError
from seunet.maths.polygon_fill import outside_distance, ring_pixels

SLACK_PX = 4.0
"""Annotators overshoot the border: up to 3.1 px in the published files.  Farther out is a mistake."""

ABSURD_PX = 1e7
"""No image is that large: not even --clip takes it for an outline."""


class Painted(NamedTuple):
    """`instances` numbers the regions from 1 in file order; a pixel of several belongs to the first."""

    instances: NDArray[np.uint16]
    counts: dict[str, int]
    decisions: list[str]


def paint_regions(regions: Sequence[Region], name: str, height: int, width: int, *, clip: bool) -> Painted:
    """The instance map of a height × width image, by the pixel-centre rule (maths/polygon_fill.py)."""
    instances = np.zeros((height, width), dtype=np.uint16)
    clipped = clipped_regions = overlap = 0
    short: list[str] = []
    unseen: list[str] = []
    for region in regions:
        if len(region.ring) < 3:
            short.append(region.label)
            continue
        outside = _check_vertices(region, name, height, width, clip=clip)
        clipped += outside
        clipped_regions += outside > 0
        row, column, covered = ring_pixels(region.ring, height, width)
        target = instances[row : row + covered.shape[0], column : column + covered.shape[1]]
        taken = covered & (target > 0)
        overlap += int(np.count_nonzero(taken))
        target[covered & ~taken] = region.number
        if not (covered & ~taken).any():
            unseen.append(region.label)
    nuclei = int(np.count_nonzero(np.bincount(instances.ravel())[1:]))
    counts = {
        "regions": len(regions),
        "instances": nuclei,
        "clipped_vertices": clipped,
        "clipped_regions": clipped_regions,
        "overlap_px": overlap,
        "short_regions": len(short),
        "unseen_regions": len(unseen),
    }
    return Painted(instances, counts, _sentences(counts, short, unseen))


def _check_vertices(region: Region, name: str, height: int, width: int, *, clip: bool) -> int:
    """The number of vertices beyond the image; an error if one is too far out and `clip` is off."""
    distance = outside_distance(region.ring, height, width)
    worst = int(distance.argmax())
    if distance[worst] > (ABSURD_PX if clip else SLACK_PX):
        x, y = region.ring[worst]
        far = f"{distance[worst]:.0f}" if distance[worst] < ABSURD_PX else f"{distance[worst]:.3g}"
        remedy = "correct the file" if distance[worst] > ABSURD_PX else "pass --clip or correct the file"
        raise InputError(
            f"{name} region {region.label}: vertex {worst + 1} ({x:g}, {y:g}) lies {far} px "
            f"outside the {width}×{height} image; {remedy}"
        )
    return int(np.count_nonzero(distance))


def _sentences(counts: dict[str, int], short: list[str], unseen: list[str]) -> list[str]:
    sentences = []
    if counts["clipped_vertices"]:
        of = f"{counts['clipped_vertices']} vertices of {counts['clipped_regions']} regions"
        sentences.append(f"{of} beyond the image: clipped")
    if counts["overlap_px"]:
        sentences.append(f"{counts['overlap_px']} pixels in several regions: given to the first")
    if short:
        sentences.append(f"regions with fewer than 3 vertices left out: {', '.join(short)}")
    if unseen:
        sentences.append(f"regions that own no pixel (hidden, or between centres): {', '.join(unseen)}")
    return sentences
