"""Rings → pixels."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.path import Path as MatplotlibPath

import seunet.maths.polygon_fill as rings
from seunet.maths.polygon_fill import outside_distance, ring_pixels
from support.ring_oracle import covered_exactly, random_ring

SQUARE = np.array([(10.0, 20.0), (60.0, 20.0), (60.0, 70.0), (10.0, 70.0)])


def painted(ring: np.ndarray, height: int, width: int) -> np.ndarray:
    out = np.zeros((height, width), dtype=bool)
    row, column, covered = ring_pixels(ring, height, width)
    out[row : row + covered.shape[0], column : column + covered.shape[1]] = covered
    return out


def test_a_square_covers_the_centres_inside_and_on_its_edge() -> None:
    out = painted(SQUARE, 100, 100)
    assert out.sum() == 51 * 51
    assert out[20:71, 10:61].all()


def test_half_a_pixel_off_the_centres_covers_one_row_and_column_less() -> None:
    assert painted(SQUARE + 0.5, 100, 100).sum() == 50 * 50


def test_a_ring_traced_twice_covers_what_it_covers_traced_once() -> None:
    assert painted(np.concatenate([SQUARE, SQUARE]), 100, 100).sum() == 2601


def test_a_ring_there_and_back_covers_only_its_own_line() -> None:
    there_and_back = np.concatenate([SQUARE, SQUARE[::-1]])
    assert painted(there_and_back, 100, 100).sum() == covered_exactly(there_and_back, 100, 100).sum()


def test_a_figure_of_eight_covers_both_loops() -> None:
    eight = np.array([(0.0, 0.0), (20.0, 20.0), (20.0, 0.0), (0.0, 20.0)])
    out = painted(eight, 30, 30)
    assert out[10, 2]
    assert out[10, 18]
    assert not out[2, 10]


def test_five_hundred_feared_rings_equal_whole_number_arithmetic() -> None:
    random = np.random.default_rng(0)
    for _ in range(500):
        ring = random_ring(random, 24)
        assert (painted(ring, 24, 21) == covered_exactly(ring, 24, 21)).all(), ring.tolist()


def test_simple_rings_equal_matplotlib_away_from_the_edge() -> None:
    random = np.random.default_rng(1)
    rows, columns = np.mgrid[:40, :40]
    centres = np.stack([columns.ravel(), rows.ravel()], axis=1)
    for _ in range(50):
        angle = np.sort(random.uniform(0, 2 * np.pi, 12))
        ring = 20 + random.uniform(5, 18) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        expected = MatplotlibPath(np.vstack([ring, ring[:1]])).contains_points(centres).reshape(40, 40)
        assert (painted(ring, 40, 40) == expected).all()


def test_memory_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = random_ring(np.random.default_rng(5), 24)
    whole = painted(ring, 24, 24)
    monkeypatch.setattr(rings, "CHUNK_CROSSINGS", 7)
    assert (painted(ring, 24, 24) == whole).all()


@pytest.mark.parametrize("shift", [-1000.0, 1000.0, 1e12, -1e300])
def test_a_ring_off_the_image_covers_nothing(shift: float) -> None:
    assert painted(SQUARE + shift, 100, 100).sum() == 0


def test_a_ring_far_larger_than_the_image_covers_all_of_it() -> None:
    assert painted((SQUARE - 40) * 1e9, 100, 100).all()


def test_distance_outside_by_hand() -> None:
    ring = np.array([(5.0, 5.0), (-3.0, 5.0), (1043.0, 998.0), (5.0, 99.0)])
    assert outside_distance(ring, 1000, 1000).tolist() == [0, 3, 44, 0]
