"""A fixed grid of cells over the working raster.

What is left out as glass, and what could not be read, is decided cell by cell: the result then does not depend on how
large the tiles were in which the raster happened to be analysed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import RegionError
from seunet.inference.heads import Rectangle
from seunet.inference.image import RgbArray
from seunet.inference.working import WorkingImage
from seunet.maths.spans import Span

CELL_PX: Final = 256
WHITE: Final = 255

Cell = tuple[int, int]
"""Row and column of the grid."""


class Region(NamedTuple):
    """Pixels, and the cells of which there are none, with the reason."""

    pixels: RgbArray
    unreadable: dict[Cell, str]


def cells_of(rectangle: Rectangle) -> Iterator[Cell]:
    """The cells that a rectangle touches, row by row."""
    rows, columns = rectangle
    for row in range(rows.start // CELL_PX, -(-rows.stop // CELL_PX)):
        for column in range(columns.start // CELL_PX, -(-columns.stop // CELL_PX)):
            yield row, column


def cell_part(cell: Cell, rectangle: Rectangle) -> Rectangle:
    """The part of a cell that lies in `rectangle`."""
    (row, column), (rows, columns) = cell, rectangle
    return Rectangle(_overlap(row, rows), _overlap(column, columns))


def _overlap(number: int, span: Span) -> Span:
    start = max(number * CELL_PX, span.start)
    return Span(start, max(start, min((number + 1) * CELL_PX, span.stop)))


def mark(values: NDArray[Any], rectangle: Rectangle, cells: Iterable[Cell], value: int) -> None:
    """Set those cells of `values`, which hold `rectangle`, to `value`."""
    for cell in cells:
        part = cell_part(cell, rectangle)
        values[part.rows.within(rectangle.rows), part.columns.within(rectangle.columns)] = value


def read_region(working: WorkingImage, wanted: Rectangle) -> Region:
    """Read a rectangle; where it cannot be read as a whole, cell by cell, and what cannot be read is white."""
    rows, columns = wanted
    try:
        return Region(working.read(columns.start, rows.start, columns.length, rows.length), {})
    except RegionError:
        pass
    pixels: RgbArray = np.full((rows.length, columns.length, 3), WHITE, dtype=np.uint8)
    unreadable: dict[Cell, str] = {}
    for cell in cells_of(wanted):
        whole = cell_part(cell, Rectangle(Span(0, working.height_px), Span(0, working.width_px)))
        part = cell_part(cell, wanted)
        try:
            # The cell is read whole, so that whether it can be read does not depend on the tile.
            found = working.read(whole.columns.start, whole.rows.start, whole.columns.length, whole.rows.length)
        except RegionError as error:
            unreadable[cell] = " ".join(str(error).split())
            continue
        cut = found[part.rows.within(whole.rows), part.columns.within(whole.columns)]
        pixels[part.rows.within(rows), part.columns.within(columns)] = cut
    return Region(pixels, unreadable)
