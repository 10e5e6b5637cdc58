"""Tiles cover an image once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seunet.errors import InputError
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tiling import HELD_BYTES, checked_tile_px, default_tile, limited, tiles


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 90), st.integers(1, 90))
def test_every_pixel_is_in_one_tile(height: int, width: int, rows: int, columns: int) -> None:
    seen = np.zeros((height, width), dtype=int)
    cut = tiles((height, width), (rows, columns))
    for tile in cut:
        seen[slice(*tile.rows), slice(*tile.columns)] += 1
        assert tile.rows.length <= rows
        assert tile.columns.length <= columns
    assert (seen == 1).all()
    assert [tile.number for tile in cut] == list(range(len(cut)))


@given(st.integers(1, 400), st.integers(1, 4096), st.integers(0, 10_000))
def test_the_default_tile_holds_what_it_may(predictions: int, channels: int, reach_px: int) -> None:
    height, width = default_tile(predictions, channels, reach_px)
    assert height >= 256
    assert width >= 256
    assert 4 * predictions * height * width <= max(HELD_BYTES, 4 * predictions * 256 * 256)


def test_the_default_tile_of_the_paper_s_networks() -> None:
    assert default_tile(10, 12, 754) == (4096, 2816)
    assert default_tile(10, 12, 1478) == (4096, 2048)
    assert default_tile(2, 60, 122) == (4096, 1088)


@pytest.mark.parametrize("size", [0, 15, -3, 10**6, 3.5, True])
def test_an_impossible_tile_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="must be a whole number of pixels from 16 to 16384"):
        checked_tile_px(size)


def test_a_limited_surrounding_is_cut_at_multiples_of_the_stride() -> None:
    assert limited(Span(0, 500), Span(100, 200), 50, 16, 1000) == Span(48, 256)
    assert limited(Span(90, 210), Span(100, 200), 50, 16, 1000) == Span(80, 224)
    assert limited(Span(0, 1000), Span(900, 1000), 50, 16, 1000) == Span(848, 1000)
