"""Which level is read, resampled by what, with filters of what size."""

import math

import pytest

from seunet.inference.image import Level
from seunet.inference.magnification import plan

ONE = (Level(1000, 600, 1.0),)
PYRAMID = (Level(8000, 6000, 1.0), Level(2000, 1500, 4.0), Level(500, 375, 16.0))


def test_where_the_mpp_is_not_known_the_pixels_are_left_alone() -> None:
    for slide, model in ((None, 0.25), (0.25, None), (None, None)):
        found = plan(slide, ONE, model, (0.5, 2))
        assert (found.level, found.resample, found.factor, found.relative_scale) == (0, 1, 1, None)
        assert (found.width_px, found.height_px) == (1000, 600)


@pytest.mark.parametrize("mpp", [0.125, 0.1537, 0.2277, 0.263, 0.4999])
def test_within_the_range_the_filters_are_scaled_by_exactly_the_ratio(mpp: float) -> None:
    found = plan(mpp, ONE, 0.25, (0.5, 2))
    assert (found.level, found.resample, found.width_px) == (0, 1, 1000)
    assert found.factor == found.relative_scale == 0.25 / mpp


def test_the_scale_of_the_training_images_is_left_as_it_is() -> None:
    assert plan(0.25001, ONE, 0.25, (0.5, 2)).factor == 1
    assert plan(0.25001, ONE, 0.25).resample == 1


def test_too_large_structures_are_read_at_a_coarser_level_and_never_snapped_to_it() -> None:
    found = plan(0.08, PYRAMID, 0.25, (0.5, 2))  # s = 3.125; at level 1 0.78
    assert (found.level, found.resample) == (1, 1)
    assert found.factor == pytest.approx(3.125 / 4)
    assert found.scale_to_level0 == 4


def test_where_no_level_fits_the_nearest_finer_one_is_resampled_to_the_training_scale() -> None:
    found = plan(0.08, PYRAMID, 0.25, (0.9, 1.1))
    assert (found.level, found.factor) == (0, 1)
    assert found.resample == pytest.approx(1 / 3.125)
    assert (found.width_px, found.height_px) == (2560, 1920)
    assert found.scale_to_level0 == pytest.approx(3.125)
    smaller = plan(0.05, PYRAMID, 0.25, (0.9, 1.1))  # s = 5; at level 1 1.25
    assert (smaller.level, smaller.resample) == (1, pytest.approx(0.8))
    assert smaller.scale_to_level0 == pytest.approx(5)


def test_too_small_structures_are_enlarged() -> None:
    found = plan(1.0, PYRAMID, 0.25, (0.5, 2))
    assert (found.level, found.resample, found.factor) == (0, 4, 1)
    assert found.scale_to_level0 == 0.25


@pytest.mark.parametrize("mpp", [0.05, 0.1, 0.2277, 0.3, 0.5, 1.0, 3.3, 20.0])
@pytest.mark.parametrize("told", [(1.0, 1.0), (0.5, 2.0), (1.0, 2.4)])
def test_filters_and_pixels_together_always_meet_the_training_scale(mpp: float, told: tuple[float, float]) -> None:
    found = plan(mpp, PYRAMID, 0.25, told)
    seen_mpp = mpp * found.scale_to_level0
    assert math.isclose(seen_mpp * found.factor, 0.25, rel_tol=2e-3)
