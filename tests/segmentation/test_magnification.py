"""Which pixels are read, and which σ they get."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seunet.errors import InputError
from seunet.images import Level, Mpp
from seunet.models import NO_RANGE
from seunet.segmentation.scale_choice import plan
from seunet.segmentation.scale_plan import MAX_ENLARGEMENT

PYRAMID = (Level(40000, 30000, 1.0), Level(10000, 7500, 4.0), Level(2500, 1875, 16.0))


def mpp(value: float) -> Mpp:
    return Mpp(value, value, "metadata")


def test_without_an_mpp_the_pixels_are_taken_as_they_are() -> None:
    found = plan(None, PYRAMID, 0.25)
    assert (found.level, found.resample, found.factor, found.relative_scale) == (0, 1, 1, None)
    assert "the image's mpp is not known" in found.reason
    assert "the model's mpp is not known" in plan(mpp(0.25), PYRAMID, None).reason


@pytest.mark.parametrize("slide", [0.2277, 0.25, 0.263, 0.4, 0.5])
def test_within_the_range_the_filters_are_scaled_and_the_pixels_left_alone(slide: float) -> None:
    found = plan(mpp(slide), PYRAMID, 0.25)
    assert (found.level, found.resample, found.downsample) == (0, 1, 1)
    assert math.isclose(found.factor, 0.25 / slide)
    assert math.isclose(found.relative_scale or 0, 0.25 / slide)


def test_a_much_finer_slide_is_read_at_the_level_that_fits() -> None:
    found = plan(mpp(0.25), PYRAMID, 1.0)
    assert (found.level, found.resample, found.factor, found.downsample) == (1, 1, 1, 4)
    found = plan(mpp(0.25), PYRAMID, 0.75)  # s = 3: level 1 has 0.75
    assert (found.level, found.resample, found.factor) == (1, 1, 0.75)
    assert "level 1 (1/4) is read as it is, every σ × 0.75" in found.reason


def test_where_no_level_fits_the_next_finer_one_is_shrunk_to_the_training_scale() -> None:
    found = plan(mpp(0.25), PYRAMID[:1], 1.0)
    assert (found.level, found.resample, found.factor, found.downsample) == (0, 0.25, 1, 4)
    found = plan(mpp(0.25), PYRAMID, 0.6, NO_RANGE)  # a model without σ
    assert (found.level, found.factor) == (0, 1)
    assert math.isclose(found.resample, 0.25 / 0.6)
    found = plan(mpp(0.25), PYRAMID, 1.5, NO_RANGE)
    assert found.level == 1
    assert math.isclose(found.downsample, 6)


def test_a_coarse_slide_is_enlarged() -> None:
    found = plan(mpp(1.0), PYRAMID, 0.25, (0.5, 2))
    assert (found.level, found.resample, found.factor, found.downsample) == (0, 4, 1, 0.25)
    found = plan(mpp(1.25), PYRAMID, 0.25, (0.5, 2))
    assert (found.resample, found.factor) == (4, 0.8)
    found = plan(mpp(8.0), PYRAMID, 0.25, (0.5, 2))
    assert found.resample == MAX_ENLARGEMENT
    assert "expect little" in found.reason


@given(st.floats(0.05, 20), st.floats(0.05, 20), st.floats(0.1, 1), st.floats(1, 10), st.integers(1, 3))
def test_structures_meet_filters_of_their_size(
    slide: float, model: float, low: float, high: float, levels: int
) -> None:
    found = plan(mpp(slide), PYRAMID[:levels], model, (low, high))
    size = model / slide / found.downsample  # of structures in working pixels, relative to training
    if "expect little" not in found.reason:
        assert math.isclose(size, found.factor, rel_tol=2e-3)
        assert low * 0.998 <= found.factor <= high * 1.002
    assert math.isclose(found.downsample, PYRAMID[found.level].downsample / found.resample)
    assert found.resample <= MAX_ENLARGEMENT


@pytest.mark.parametrize("value", [0.0, -0.25, math.nan, math.inf, 400.0, 0.001])
def test_an_absurd_mpp_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"must be a number of µm per pixel from 0\.05 to 20"):
        plan(mpp(value), PYRAMID, 0.25)


@pytest.mark.parametrize("bounds", [(1.5, 2), (0.5, 0.9), (0, 2), (0.5, math.inf)])
def test_an_impossible_range_is_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="must be two numbers with 1 between them"):
        plan(mpp(0.25), PYRAMID, 0.25, bounds)
