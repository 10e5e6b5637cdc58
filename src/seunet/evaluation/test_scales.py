"""The magnifications a model is tested at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from seunet.errors import InputError
from seunet.limits import MAX_IMAGE_PIXELS
from seunet.maths.rescaling import scaled_size

TEST_SCALES: Final = tuple(0.25 * 2 ** (step / 4) for step in range(17))
"""The paper's: 0.25 to 4 in steps of ⁴√2."""


def scale_label(scale: float) -> str:
    """As the paper's tables have it: two decimals.

    Examples:
        >>> [scale_label(scale) for scale in TEST_SCALES[:4]]
        ['0.25', '0.3', '0.35', '0.42']
    """
    return f"{round(scale, 2):g}"


def parsed_scales(text: str) -> tuple[float, ...]:
    """The scales of `0.5,1,2`."""
    try:
        scales = tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        scales = ()
    if not scales:
        raise InputError(f"--scales {text!r}: must be numbers with commas between them, e.g. --scales 0.5,1,2")
    return scales


def check_scales(scales: Sequence[float], window_px: int) -> None:
    """Refuse what cannot be: a scale that leaves no pixel, one beyond all memory, one given twice."""
    for scale in scales:
        if not math.isfinite(scale) or scale <= 0:
            raise InputError(f"scale {scale:g} must be a positive number")
        side = scaled_size(window_px, scale)
        if side < 1:
            raise InputError(f"scale {scale:g} leaves less than one pixel of a {window_px}×{window_px} window")
        if side**2 > MAX_IMAGE_PIXELS:
            raise InputError(f"scale {scale:g} makes a window {side}×{side} px; the limit is {MAX_IMAGE_PIXELS:,} px")
        if list(scales).count(scale) > 1:
            raise InputError(f"scale {scale:g} is given twice")


def check_way_scales(way_scales: Mapping[Any, Sequence[float]], scales: Sequence[float]) -> None:
    """Refuse a way with no scale, or with one that is not among the test scales."""
    for way, chosen in way_scales.items():
        strange = [scale for scale in chosen if scale not in scales]
        if strange or not chosen:
            what = f"{strange[0]:g} is not a test scale" if strange else "names no scale"
            raise InputError(f"scales of {way!r}: {what}; choose among {', '.join(map(scale_label, scales))}")
