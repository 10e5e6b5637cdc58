"""Which object each pixel of a picture shows: the lines between touching nuclei are in no plane of classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from seunet.results.find_objects import Labels, Object


class NumberedObjects:
    """A picture of `height` × `width` of a plane, into which the objects that pass by are painted."""

    def __init__(self, plane: Labels, height: int, width: int) -> None:
        self.numbers: NDArray[np.int32] = np.zeros((height, width), dtype=np.int32)
        """[height, width]: 1, 2, … for the object at the centre of each pixel, 0 for none."""
        self._rows, self._columns = _first_pixels(plane.height_px, height), _first_pixels(plane.width_px, width)

    def passing(self, found: Iterable[Object]) -> Iterator[Object]:
        """The same objects, painted."""
        for number, one in enumerate(found, start=1):
            self._paint(one, number)
            yield one

    def _paint(self, one: Object, number: int) -> None:
        row, start, end = one.runs
        top, bottom, left, right = self._rows[row], self._rows[row + 1], self._columns[start], self._columns[end]
        shown = (top < bottom) & (left < right)
        for place in np.stack([top, bottom, left, right], axis=1)[shown].tolist():
            self.numbers[place[0] : place[1], place[2] : place[3]] = number


def _first_pixels(length: int, small: int) -> NDArray[np.int64]:
    """[length + 1]: for each pixel of a line the first of `small` cells over it with its centre there or later."""
    centres = ((np.arange(small) + 0.5) * length / small).astype(np.int64)
    return np.searchsorted(centres, np.arange(length + 1))
