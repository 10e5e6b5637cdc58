"""Which head won where: the heads carry the scale, so this shows how large structures looked to the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seunet.images.image import RgbArray
from seunet.results.frame import Color, Frame
from seunet.results.label_plane import Labels
from seunet.results.pictures.legend import Line, code_shares, shades, with_legend
from seunet.storage.atomic import write_bytes

Sigmas = Sequence[tuple[float, float]]

TINT: Final = 0.7
"""How much of a pixel is the heads' colour; the rest is the picture in grey, so that one knows where one is."""
GREY: Final = (0.299, 0.587, 0.114)


def write_heads(
    path: Path,
    thumbnail: RgbArray,
    plane: Labels,
    won: Sequence[int],
    sigmas_px: Sigmas | None = None,
    um_per_px: float | None = None,
) -> None:
    """Write `thumbnail` [height, width, 3] in grey, coloured by the heads that won, as PNG.

    `plane` holds 1, 2, … for the heads from the finest and 0 where nobody looked; a pixel of the picture that covers
    several of its pixels has the mean of their colours.  `won` is how many pixels each head won, `sigmas_px` the
    smallest and largest σ of each, and `um_per_px` the size of a pixel of the plane.
    """
    from seunet.images.pillow_codec import encode_png_quickly

    height, width = thumbnail.shape[:2]
    colors = head_colors(len(won))
    shares = code_shares(plane, range(1, len(won) + 1), height, width)
    grey: NDArray[np.float32] = thumbnail.astype(np.float32) @ np.array(GREY, dtype=np.float32)
    # Each head's colour in turn would give the later ones more than their share: all are mixed into the grey at once.
    mixed = np.tensordot(shares, np.array(colors, dtype=np.float32), axes=(0, 0))
    picture = (grey * (1 - TINT * shares.sum(axis=0)))[..., None] + TINT * mixed
    scale = None if um_per_px is None else um_per_px * plane.width_px / width
    lines = head_lines(colors, won, sigmas_px)
    write_bytes(path, encode_png_quickly(with_legend(np.rint(picture).astype(np.uint8), lines, scale)))


def head_colors(count: int) -> list[Color]:
    """From dark to bright, as the heads go from fine to coarse."""
    return [(round(255 * red), round(255 * green), round(255 * blue)) for red, green, blue, *_ in shades(count)]


def heads_frame(frame: Frame, count: int) -> Frame:
    """That of the labels, for a plane of 0 where nobody looked and 1, 2, … for the heads from the finest."""
    names = ("not looked at", *(f"head {number}" for number in range(1, count + 1)))
    return replace(frame, class_names=names, class_colors=((0, 0, 0), *head_colors(count)), background=0)


def head_lines(colors: Sequence[Color], won: Sequence[int], sigmas_px: Sigmas | None) -> list[Line]:
    """A line for each head: how wide its filters are and how much it won."""
    analysed = max(1, sum(won))
    lines: list[Line] = []
    for number, (color, pixels) in enumerate(zip(colors, won, strict=True)):
        width = "" if sigmas_px is None else f" (σ {sigmas_px[number][0]:.2f}–{sigmas_px[number][1]:.2f} px)"
        lines.append((color, f"head {number + 1}{width}: surest in {100 * pixels / analysed:.1f} % of the tissue"))
    return lines
