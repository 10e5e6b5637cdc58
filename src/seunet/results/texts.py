"""Numbers as text, many at a time: the coordinates of outlines, and rows of numbers between constant words.

Python writes a number in a microsecond, and an object has fifty: here they are written as bytes, by compiled loops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.kernels.compiling.first_call import compiled

COMMA, MINUS, POINT, ZERO, OPENED, CLOSED = (ord(sign) for sign in ",-.0[]")
NUMBER_BYTES: Final = 24
"""The longest number: a sign, 19 digits, a point and what follows a number."""
LARGE: Final = 1e11
NEAR: Final = 1e-3
"""How near to half a unit of the last digit, or how many units, a number must be for us not to round it here."""


@compiled
def put_whole(text: Any, at: int, value: int) -> int:
    """A whole number from 0 up as digits; where they end."""
    digits, rest = 1, value // 10
    while rest:
        digits, rest = digits + 1, rest // 10
    for place in range(at + digits - 1, at - 1, -1):
        text[place] = ZERO + value % 10
        value //= 10
    return at + digits


@compiled
def put_decimal(text: Any, at: int, units: int, decimals: int) -> int:
    """`units` / 10^`decimals` with as few digits as that needs; where they end."""
    one = 1
    for _ in range(decimals):
        one *= 10
    at = put_whole(text, at, units // one)
    rest = units % one
    if rest:
        text[at] = POINT
        for place in range(decimals):
            one //= 10
            text[at + 1 + place] = ZERO + rest // one % 10
        at += 1 + decimals
        while text[at - 1] == ZERO:
            at -= 1
    return at


@compiled
def put_point(text: Any, at: int, x: int, y: int, decimals: int) -> int:
    """[x,y], in units of the last decimal, and a comma."""
    text[at] = OPENED
    for units in (x, y):
        at += 1
        if units < 0:
            text[at] = MINUS
            at += 1
        at = put_decimal(text, at, abs(units), decimals)
        text[at] = COMMA
    text[at], text[at + 1] = CLOSED, COMMA
    return at + 2


@compiled
def coordinates_texts(
    points: Any, ring_stops: Any, object_rings: Any, scales: Any, offset_x: int, offset_y: int
) -> tuple[Any, Any]:
    """[[[x,y],…],…] of objects one after the other as bytes, and where each ends.

    `points` [points, (x, y)] are those of rings that end before `ring_stops`, of which objects end before
    `object_rings`.  Rings are closed; a point is point × scale − offset, rounded to thousandths.  Each axis is rounded
    by itself and, with a scale of 0.01 or more, no two pixel edges fall together, here or when a reader rounds to
    hundredths: outlines along pixel edges stay as valid as they were, and neighbours keep their common edge.
    """
    text = np.empty((len(points) + len(ring_stops)) * 2 * NUMBER_BYTES + 4 * len(ring_stops), dtype=np.uint8)
    ends = np.empty(len(object_rings), dtype=np.int64)
    at, ring, start = 0, 0, 0
    for one in range(len(object_rings)):
        text[at] = OPENED
        at += 1
        while ring < object_rings[one]:
            text[at] = OPENED
            at += 1
            for place in range(start, ring_stops[ring] + 1):
                point = place if place < ring_stops[ring] else start
                x = np.int64(np.rint(points[point, 0] * scales[one] * 1000)) - 1000 * offset_x
                y = np.int64(np.rint(points[point, 1] * scales[one] * 1000)) - 1000 * offset_y
                at = put_point(text, at, x, y, np.int64(3))
            text[at - 1], text[at] = CLOSED, COMMA
            at += 1
            start = ring_stops[ring]
            ring += 1
        text[at - 1] = CLOSED
        ends[one] = at
    return text[:at], ends


@compiled
def numbers_between(words: Any, word_stops: Any, values: Any, decimals: Any) -> tuple[Any, Any, Any]:
    """Rows of text as bytes, where each ends, and which of them are not to be trusted.

    A row is the first word, the first of its `values` [rows, numbers], the second word, … and the last word.  Numbers
    are rounded to `decimals` and written with as few digits as that needs.  Where a number is about half way between
    two, Python knows better which of them it is nearer to: its row is not to be trusted.
    """
    rows, numbers = values.shape
    text = np.empty(rows * (len(words) + NUMBER_BYTES * numbers), dtype=np.uint8)
    ends, doubtful = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
    at = 0
    for row in range(rows):
        start = 0
        for number in range(numbers + 1):
            for place in range(start, word_stops[number]):
                text[at] = words[place]
                at += 1
            start = word_stops[number]
            if number == numbers:
                break
            value = values[row, number]
            units = abs(value)
            for _ in range(decimals[number]):
                units *= 10
            if not units < LARGE or abs(units - np.floor(units) - 0.5) < NEAR:
                doubtful[row] = True
                continue
            rounded = np.int64(np.rint(units))
            if value < 0 and rounded > 0:  # there is no -0
                text[at] = MINUS
                at += 1
            at = put_decimal(text, at, rounded, decimals[number])
        ends[row] = at
    return text[:at], ends, doubtful


def pieces(text: NDArray[np.uint8], stops: NDArray[np.int64]) -> list[bytes]:
    """The text cut before each of `stops`."""
    whole, begin, found = text.tobytes(), 0, []
    for stop in stops.tolist():
        found.append(whole[begin:stop])
        begin = stop
    return found
