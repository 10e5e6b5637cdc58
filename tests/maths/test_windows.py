"""Where windows lie."""

from __future__ import annotations

import numpy as np
import pytest

from seunet.maths.windows import annotated_fraction, window_grid, window_starts


def test_the_papers_windows_are_sixteen_an_image() -> None:
    assert len(window_grid(1000, 1000, 400, 200)) == 16
    assert window_grid(1000, 1000, 400, 200)[:5] == [(0, 0), (200, 0), (400, 0), (600, 0), (0, 200)]


@pytest.mark.parametrize(("length", "starts"), [(512, [0]), (100, [0]), (1024, [0, 512]), (1100, [0, 512, 588])])
def test_every_pixel_is_in_a_window(length: int, starts: list[int]) -> None:
    assert window_starts(length, 512, 512) == starts
    covered = np.zeros(length, dtype=bool)
    for start in starts:
        covered[start : start + 512] = True
    assert covered.all()


def test_pixels_beyond_the_image_are_not_annotated() -> None:
    mask = np.zeros((10, 10), dtype=np.uint8)
    mask[:5] = 255
    assert annotated_fraction(mask, 0, 0, 10, 255) == 0.5
    assert annotated_fraction(mask, 0, 0, 20, 255) == 50 / 400
