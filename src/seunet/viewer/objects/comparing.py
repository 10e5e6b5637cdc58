"""Two results of the same place: which objects of one are in the other too, and which are not."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.viewer.objects.index import Mask, ObjectIndex

NEAR: Final = 0.5
"""Two objects are the same if each is the other's nearest, no farther apart than this × their mean diameter."""

Numbers = NDArray[np.int64]


class Compared(NamedTuple):
    """What became of the objects of both results."""

    partner: Numbers
    """For each object of the first the number of the same one in the second, −1 for none."""
    second_matched: Mask
    other_class: Mask
    """Objects of the first whose partner has another class."""

    @property
    def first_matched(self) -> Mask:
        return self.partner >= 0


def compare(first: ObjectIndex, second: ObjectIndex, scale: float = 1.0) -> Compared:
    """`scale` brings places of the second to those of the first (the slides may be of different size)."""
    there = nearest(first.centers, second.centers * scale)
    back = nearest(second.centers * scale, first.centers)
    numbers = np.arange(len(first))
    mutual = (there >= 0) & (back[there] == numbers) if len(second) else np.zeros(len(first), np.bool_)
    apart = np.hypot(*(first.centers[mutual] - second.centers[there[mutual]] * scale).T)
    across = (diameters(first)[mutual] + scale * diameters(second)[there[mutual]]) / 2
    partner = np.full(len(first), -1)
    same = np.flatnonzero(mutual)[apart <= NEAR * across]
    partner[same] = there[same]
    matched = np.zeros(len(second), dtype=np.bool_)
    matched[partner[same]] = True
    names, others = np.array([*first.class_names, ""]), np.array([*second.class_names, ""])
    differs = np.zeros(len(first), dtype=np.bool_)
    differs[same] = names[first.classes[same]] != others[second.classes[partner[same]]]
    return Compared(partner, matched, differs)


def diameters(index: ObjectIndex) -> NDArray[np.float32]:
    """The mean side of each object's box."""
    sides: NDArray[np.float32] = (index.boxes[:, 2:] - index.boxes[:, :2]).mean(axis=1)
    return sides


def nearest(points: NDArray[np.float32], others: NDArray[np.float32]) -> Numbers:
    """For each point the number of the nearest of `others`, −1 if there are none.  The first of equally near ones."""
    import cv2

    if not len(points) or not len(others):
        return np.full(len(points), -1)
    # Trees of OpenCV, searched without a limit: exact, and in C.
    tree = cv2.flann.Index(np.ascontiguousarray(others, np.float32), {"algorithm": 4, "leaf_max_size": 16})
    found, _ = tree.knnSearch(np.ascontiguousarray(points, np.float32), 1, params={"checks": -1})
    return np.asarray(found[:, 0], dtype=np.int64)
