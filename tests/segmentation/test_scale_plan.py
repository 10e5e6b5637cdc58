"""Working pixels of an image with one level, as the evaluation has it; slides are tested in `test_magnification`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seunet.errors import InputError
from seunet.segmentation.scale_plan import MAX_ENLARGEMENT, Working, working_pixels

RANGE = (0.8, 1.25)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (1.0, Working(0, 1, 1, 1)),
        (1.2, Working(0, 1, 1.2, 1.2)),
        (0.8, Working(0, 1, 0.8, 0.8)),
        (0.5, Working(0, 2, 1, 1)),
        (4.0, Working(0, 0.25, 1, 1)),
        (0.2, Working(0, 4, 0.8, 0.8)),
        (0.125, Working(0, 4, 1, 0.5)),
    ],
)
def test_filters_within_the_range_and_pixels_beyond(scale: float, expected: Working) -> None:
    assert working_pixels(scale, (1.0,), RANGE) == pytest.approx(expected)


@given(st.floats(0.05, 20))
def test_structures_are_as_large_for_the_filters_as_in_training(scale: float) -> None:
    found = working_pixels(scale, (1.0, 4.0), RANGE)
    assert found.resample <= MAX_ENLARGEMENT
    if scale >= RANGE[0] / MAX_ENLARGEMENT:
        assert scale / (1, 4)[found.level] * found.resample / found.factor == pytest.approx(1, rel=2e-3)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_is_a_positive_number(scale: float) -> None:
    with pytest.raises(InputError, match=r"`scale` .* must be a positive number"):
        working_pixels(scale, (1.0,), RANGE)


def test_the_range_has_1_in_it() -> None:
    with pytest.raises(InputError, match="must be two numbers with 1 between them"):
        working_pixels(1.0, (1.0,), (2.0, 3.0))
