"""Rings of points → the text of GeoJSON coordinates: the innermost loop of writing a slide's outlines."""

from __future__ import annotations

from typing import Any

import numpy as np

from seunet.kernels.compiling import compiled

ZERO, COMMA, MINUS, POINT, OPEN, CLOSE = (ord(sign) for sign in "0,-.[]")
ROOM = 48
"""Bytes that a point takes at most."""


@compiled
def put_number(text: Any, at: int, thousandths: int) -> int:
    """Write a number of thousandths with as few digits as it needs; returns the place after it."""
    if thousandths < 0:
        text[at] = MINUS
        at, thousandths = at + 1, -thousandths
    whole, rest = thousandths // 1000, thousandths % 1000
    digits, left = 1, whole // 10
    while left:
        digits, left = digits + 1, left // 10
    for place in range(at + digits - 1, at - 1, -1):
        text[place] = ZERO + whole % 10
        whole //= 10
    at += digits
    if rest:
        text[at] = POINT
        at += 1
    while rest:
        text[at] = ZERO + rest // 100
        at, rest = at + 1, rest % 100 * 10
    return at


@compiled
def put_point(text: Any, at: int, x: int, y: int) -> int:
    """Write [x,y]; returns the place after it."""
    text[at] = OPEN
    at = put_number(text, at + 1, x)
    text[at] = COMMA
    at = put_number(text, at + 1, y)
    text[at] = CLOSE
    return at + 1


@compiled
def coordinates_text(points: Any, stops: Any, scale: float, offset_x: int, offset_y: int) -> Any:
    """The bytes of [[[x,y],…],…]: each ring closed, points × scale − offset, rounded to thousandths.

    Each axis is rounded by itself and, with a scale of 0.01 or more, no two pixel edges fall together, here or when a
    reader rounds to hundredths: outlines along pixel edges stay as valid as they were, and neighbours keep their
    common edge.
    """
    text = np.empty(ROOM * (len(points) + len(stops)) + 2, dtype=np.uint8)
    at, start = 0, 0
    for stop in stops:
        text[at] = OPEN if start == 0 else COMMA
        text[at + 1] = OPEN
        at += 2
        for step in range(stop - start + 1):
            point = start + step if step < stop - start else start
            if step:
                text[at] = COMMA
                at += 1
            x = np.int64(np.rint(points[point, 0] * scale * 1000)) - 1000 * offset_x
            y = np.int64(np.rint(points[point, 1] * scale * 1000)) - 1000 * offset_y
            at = put_point(text, at, x, y)
        text[at] = CLOSE
        at += 1
        start = stop
    text[at] = CLOSE
    return text[: at + 1]
