"""AJI, PQ and F1: cases with known answers, and a second implementation that goes object by object."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.maths.object_overlaps import InstanceScores, instance_scores, overlaps

Map = NDArray[np.int64]


def scored(truth: Map, found: Map) -> InstanceScores:
    return instance_scores(overlaps(truth, found))


def boxes(*placed: tuple[int, int, int, int], size: tuple[int, int] = (20, 20)) -> Map:
    """Rectangles (top, left, height, width) numbered from 1."""
    result = np.zeros(size, dtype=np.int64)
    for number, (top, left, height, width) in enumerate(placed, start=1):
        result[top : top + height, left : left + width] = number
    return result


def one_by_one(truth: Map, found: Map) -> dict[str, float]:
    """The definitions as they are written, with sets of pixels."""
    true, other = (
        [set(np.flatnonzero(numbers == each)) for each in np.unique(numbers) if each] for numbers in (truth, found)
    )
    shared = either = 0
    used = set()
    for nucleus in true:
        ious = [len(nucleus & one) / len(nucleus | one) for one in other]
        best = int(np.argmax(ious)) if ious and max(ious) > 0 else None
        if best is None:
            either += len(nucleus)
            continue
        used.add(best)
        shared += len(nucleus & other[best])
        either += len(nucleus | other[best])
    either += sum(len(one) for place, one in enumerate(other) if place not in used)
    pairs = [len(a & b) / len(a | b) for a in true for b in other if 2 * len(a & b) > len(a | b)]
    wrong, missed = len(other) - len(pairs), len(true) - len(pairs)
    dq = len(pairs) / (len(pairs) + wrong / 2 + missed / 2)
    return {"aji": shared / either, "dq": dq, "pq": sum(pairs) / (len(pairs) + wrong / 2 + missed / 2)}


def test_the_truth_itself_has_all_scores_1() -> None:
    truth = boxes((0, 0, 4, 4), (8, 8, 5, 3))
    assert scored(truth, truth) == InstanceScores(1.0, 1.0, 1.0, 1.0, 2, 2, 2)


def test_numbers_need_not_be_consecutive_nor_alike() -> None:
    truth = boxes((0, 0, 4, 4), (8, 8, 5, 3))
    assert scored(truth * 700, np.where(truth > 0, 90 - truth, 0)) == scored(truth, truth)


def test_a_nucleus_found_half_again_as_large_has_an_iou_of_two_thirds() -> None:
    found = scored(boxes((0, 0, 4, 4)), boxes((0, 0, 4, 6)))
    assert found == pytest.approx((16 / 24, 16 / 24, 1.0, 16 / 24, 1, 1, 1))


def test_half_a_nucleus_is_no_pair_and_still_counts_in_the_aji() -> None:
    found = scored(boxes((0, 0, 4, 4)), boxes((0, 0, 4, 2)))
    assert (found.aji, found.pq, found.dq, found.pairs) == (0.5, 0.0, 0.0, 0)
    assert math.isnan(found.sq)


def test_two_nuclei_found_as_one_share_it_in_the_aji() -> None:
    # |G| = 16 and 8, S covers both (24): AJI = (16 + 8) / (24 + 24); only the larger is a pair (IoU 2/3).
    found = scored(boxes((0, 0, 4, 4), (0, 4, 4, 2)), boxes((0, 0, 4, 6)))
    assert (found.aji, found.dq, found.sq) == pytest.approx((0.5, 2 / 3, 2 / 3))
    assert found.pq == pytest.approx(4 / 9)


def test_what_is_missed_and_what_is_invented_costs_its_area() -> None:
    truth, other = boxes((0, 0, 4, 4), (10, 10, 2, 5)), boxes((0, 0, 4, 4), (16, 0, 3, 2))
    assert scored(truth, other) == pytest.approx((16 / (16 + 10 + 6), 0.5, 0.5, 1.0, 1, 2, 2))


def test_the_better_of_two_halves_is_the_one_of_the_aji() -> None:
    # 3 of 4 columns and 1 of 4: 12 / (16 + 4).
    found = scored(boxes((0, 0, 4, 4)), boxes((0, 0, 4, 3), (0, 3, 4, 1)))
    assert (found.aji, found.dq, found.sq) == pytest.approx((12 / 20, 2 / 3, 0.75))


def test_without_objects_there_is_no_score_and_with_invented_ones_it_is_0() -> None:
    nothing, one = boxes(), boxes((0, 0, 4, 4))
    empty = scored(nothing, nothing)
    assert (empty.true, empty.found, empty.pairs) == (0, 0, 0)
    assert all(math.isnan(value) for value in empty[:4])
    for truth, found in ((nothing, one), (one, nothing)):
        assert scored(truth, found)[:3] == (0.0, 0.0, 0.0)


def test_a_map_without_background_is_counted_too() -> None:
    whole = np.ones((4, 4), dtype=np.int64)
    assert scored(whole, whole).aji == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_scores_are_those_of_going_object_by_object(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth, found = np.zeros((40, 50), np.int64), np.zeros((40, 50), np.int64)
    for number in range(1, 15):
        top, left, height, width = random.integers(0, 34), random.integers(0, 42), *random.integers(2, 9, 2)
        truth[top : top + height, left : left + width] = number * 3
        if random.random() < 0.8:
            down, right = np.maximum(random.integers(-2, 3, 2) + np.array([top, left]), 0)
            found[down : down + height, right : right + width] = number * 5
    expected, got = one_by_one(truth, found), scored(truth, found)
    assert {name: getattr(got, name) for name in expected} == pytest.approx(expected, abs=1e-14)


def test_maps_of_different_size_or_with_negative_numbers_are_refused() -> None:
    with pytest.raises(InputError, match=r"`truth` of shape \[2, 2\] and `found` \[2, 3\] must agree"):
        overlaps(np.zeros((2, 2), np.int64), np.zeros((2, 3), np.int64))
    with pytest.raises(InputError, match="`truth` and `found` must hold numbers from 0 up"):
        overlaps(np.full((2, 2), -1), np.zeros((2, 2), np.int64))
