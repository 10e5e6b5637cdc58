"""Intervals from resampled images and seeds: hand-made cases, and what theory says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from seunet.maths.bootstrap import Interval, draw_images, drawn_ious, headline_ious, interval, over_seeds
from seunet.maths.confusion import headline_iou


def matrices(ious: NDArray[np.float64], pixels: int = 10_000) -> NDArray[np.int64]:
    """Two-class confusion matrices of these IoU, half of the misses on either side."""
    both = np.rint(ious * pixels).astype(np.int64)
    missed = (pixels - both) // 2
    return np.stack(
        [np.stack([np.full_like(both, pixels), pixels - both - missed], -1), np.stack([missed, both], -1)], -2
    )


@pytest.mark.parametrize("classes", [2, 5])
def test_the_iou_is_that_of_the_tables(classes: int) -> None:
    random = np.random.default_rng(1)
    found = random.integers(0, 100, (7, classes, classes))
    found[0, -1], found[0, :, -1] = 0, 0  # a class that is neither there nor predicted
    expected = [headline_iou(torch.from_numpy(one)) for one in found]
    np.testing.assert_allclose(headline_ious(found), expected, rtol=1e-12)


def test_the_first_draw_is_the_set_itself_and_every_draw_has_as_many_images() -> None:
    drawn = draw_images(14, 50, np.random.default_rng(0))
    assert (drawn.weights[0] == 1).all()
    assert (drawn.weights.sum(1) == 14).all()
    counts = matrices(np.random.default_rng(2).uniform(0.3, 0.8, (14, 3)))
    np.testing.assert_allclose(drawn_ious(counts, drawn)[0], headline_ious(counts.sum(0)), rtol=1e-12)


def test_the_width_is_what_theory_says_of_a_mean_over_images() -> None:
    ious = np.random.default_rng(3).normal(0.6, 0.05, 40)
    drawn = draw_images(40, 4000, np.random.default_rng(0))
    # Equal unions: the IoU over all images is the mean of theirs.
    found = interval(drawn_ious(matrices(ious), drawn))
    expected = 2 * 1.96 * ious.std() / math.sqrt(40)
    assert found.value == pytest.approx(ious.mean(), abs=1e-4)
    assert found.high - found.low == pytest.approx(expected, rel=0.08)


def test_what_is_hard_for_both_cancels_in_a_paired_difference() -> None:
    random = np.random.default_rng(4)
    hard = random.uniform(0.2, 0.8, 14)
    drawn = draw_images(14, 2000, random)
    better, worse = drawn_ious(matrices(hard + 0.02), drawn), drawn_ious(matrices(hard), drawn)
    paired = interval(better - worse)
    assert paired.verdict == 1
    assert paired.high - paired.low < 0.001
    other = drawn_ious(matrices(hard), draw_images(14, 2000, np.random.default_rng(5)))
    assert interval(better - other).verdict == 0, "unpaired, the images hide it"


def test_a_system_against_itself_differs_by_nothing() -> None:
    drawn = draw_images(5, 100, np.random.default_rng(0))
    ious = drawn_ious(matrices(np.linspace(0.3, 0.7, 5)), drawn)
    assert interval(ious - ious) == Interval(0.0, 0.0, 0.0)
    assert interval(ious - ious).verdict == 0
    assert interval(ious - 1).verdict == -1


def test_seeds_that_disagree_widen_the_interval() -> None:
    drawn = draw_images(14, 3000, np.random.default_rng(0))
    alike = np.full((3001, 3), 0.5)
    apart = np.tile([0.45, 0.5, 0.55], (3001, 1))
    assert interval(over_seeds(alike, drawn.random)) == Interval(0.5, 0.5, 0.5)
    found = interval(over_seeds(apart, drawn.random))
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.439, 0.561), abs=0.02)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_mean_over_seeds_varies_as_much_as_the_mean_of_so_many_does(seeds: int) -> None:
    values = np.random.default_rng(6).normal(size=seeds)
    means = over_seeds(np.tile(values, (20_001, 1)), np.random.default_rng(0))[1:]
    assert means.std() == pytest.approx(values.std(ddof=1) / math.sqrt(seeds), rel=0.03)


def test_one_seed_stays_as_it_is() -> None:
    values = np.random.default_rng(7).normal(size=(11, 1, 4))
    np.testing.assert_array_equal(over_seeds(values, np.random.default_rng(0)), values[:, 0])
