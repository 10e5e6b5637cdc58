"""σ: its ranges, constraint, filter sizes and schedules."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seunet.errors import InputError
from seunet.maths.sigma import (
    SigmaRange,
    block_starts,
    constrain,
    equal_range,
    filter_radius,
    free_sigma,
    geometric_range,
    paper_schedule,
)


def bounds(sigma_range: SigmaRange, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(sigma_range.lower, dtype=dtype), torch.tensor(sigma_range.upper, dtype=dtype)


def test_the_papers_schedule_is_the_table_of_the_notes() -> None:
    starts = (0.0, 0.5, 1.0, 1.5, 2.0, 1.5, 1.0, 0.5, 0.0)
    assert block_starts(4) == starts
    for start, block in zip(starts, paper_schedule(), strict=True):
        assert block.lower == pytest.approx([start + 0.5 * k for k in range(5)])
        assert block.upper == pytest.approx([start + 0.5 * (k + 1) for k in range(5)])


def test_the_first_layers_filters_have_the_sizes_of_the_paper() -> None:
    assert [2 * filter_radius(upper) + 1 for upper in paper_schedule()[0].upper] == [3, 5, 7, 9, 11]
    assert 2 * filter_radius(4.5) + 1 == 19
    assert 2 * filter_radius(9.99) + 1 == 41


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(x=st.floats(-1e30, 1e30))
def test_sigma_stays_strictly_inside_its_interval(dtype: torch.dtype, x: float) -> None:
    for block in paper_schedule():
        lower, upper = bounds(block, dtype)
        sigma = constrain(torch.full((5,), x, dtype=dtype), lower, upper)
        assert bool((sigma > lower).all())
        assert bool((sigma < upper).all())


def test_x_zero_is_the_middle_of_the_interval() -> None:
    lower, upper = bounds(equal_range(0, 2.5, 5))
    assert constrain(torch.zeros(5), lower, upper).tolist() == pytest.approx([0.25, 0.75, 1.25, 1.75, 2.25])


def test_constrained_sigma_tells_x_by_its_position_in_the_interval() -> None:
    lower, upper = bounds(equal_range(1, 3.5, 5), torch.float64)
    x = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0], dtype=torch.float64)
    position = (2 * constrain(x, lower, upper) - upper - lower) / (upper - lower)
    torch.testing.assert_close(torch.atanh(position), x, rtol=0, atol=1e-3)


def test_the_gradient_of_sigma_is_finite_and_reaches_x_even_at_the_floor() -> None:
    lower, upper = bounds(equal_range(0, 2.5, 5))
    x = torch.full((5,), -1.5, requires_grad=True)  # the first σ would be 0.024, below the floor of 0.1
    sigma = constrain(x, lower, upper)
    assert float(sigma.detach()[0]) == pytest.approx(0.1)
    (gradient,) = torch.autograd.grad(sigma.sum(), x)
    assert bool((gradient > 0).all())


@given(x=st.floats(-1e30, 1e30))
def test_free_sigma_neither_reaches_zero_nor_overflows(x: float) -> None:
    value = float(free_sigma(torch.tensor(x)))
    assert 0.099 < value <= 256
    assert filter_radius(value) <= 512


def test_tied_intervals_keep_the_ratio_of_their_sigmas_whatever_x_is() -> None:
    sigma_range = geometric_range(0.7, math.sqrt(2), 5)
    assert sigma_range.midpoints == pytest.approx([0.7 * 2 ** (k / 2) for k in range(5)])
    lower, upper = bounds(sigma_range, torch.float64)
    for x in (-3.0, 0.0, 0.8):
        sigma = constrain(torch.tensor([x], dtype=torch.float64), lower, upper)
        assert (sigma[1:] / sigma[:-1]).tolist() == pytest.approx([math.sqrt(2)] * 4)


def test_scaling_a_range_scales_both_bounds() -> None:
    doubled = equal_range(0.5, 3, 5).scaled(2)
    assert doubled.lower == pytest.approx([1, 2, 3, 4, 5])
    assert doubled.upper == pytest.approx([2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        ((), (), "must be two equally long lists"),
        ((0.0,), (1.0, 2.0), "must be two equally long lists"),
        ((-0.5,), (1.0,), r"σ interval 0 \(-0.5, 1\) must be finite and not negative"),
        ((0.0,), (math.inf,), "must be finite and not negative"),
        ((1.0,), (1.0,), r"σ interval 0 \(1, 1\) is empty; its upper bound must be the larger one"),
        ((0.0, 0.4), (0.5, 1.0), r"σ interval 1 \(0.4, 1\) overlaps the one before it, which ends at 0.5"),
    ],
)
def test_impossible_intervals_are_refused(lower: tuple[float, ...], upper: tuple[float, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        SigmaRange(lower, upper)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_factor_must_be_positive_and_finite(factor: float) -> None:
    with pytest.raises(InputError, match=r"`factor` .* must be a positive number"):
        equal_range(0, 2.5, 5).scaled(factor)


def test_a_huge_filter_is_refused_with_its_size() -> None:
    with pytest.raises(InputError, match=r"σ = 300 needs a filter of radius 600 px; the largest is 512"):
        filter_radius(300.0)


def test_a_ratio_of_one_is_no_geometric_schedule() -> None:
    with pytest.raises(InputError, match=r"`ratio` \(=1\) must be larger than 1"):
        geometric_range(0.7, 1.0, 5)


def walk(steps: int, scales: int, seed: int) -> torch.Tensor:
    """Positions after each of so many random updates, from a millionth to a million in size: [steps, scales]."""
    random = torch.Generator().manual_seed(seed)
    sizes = 10 ** (torch.rand(steps, scales, generator=random, dtype=torch.float64) * 12 - 6)
    signs = torch.randint(0, 2, (steps, scales), generator=random) * 2 - 1
    small = torch.rand(steps, scales, generator=random, dtype=torch.float64) < 0.9
    # Mostly small steps near the middle, where tanh is alive, with leaps far beyond it between them.
    return torch.where(small, signs * sizes.clamp(max=4), (signs * sizes).cumsum(0)).float()


def test_over_a_hundred_thousand_updates_sigma_never_leaves_its_interval_and_its_gradient_is_finite() -> None:
    for number, block in enumerate(paper_schedule()):
        lower, upper = bounds(block)
        x = walk(100_000, 5, number).requires_grad_()
        sigma = constrain(x, lower, upper)
        assert bool(((sigma > lower) & (sigma < upper)).all())
        assert bool((sigma >= 0.1 - 1e-6).all())
        (gradient,) = torch.autograd.grad(sigma.sum(), x)
        assert bool((gradient.isfinite() & (gradient >= 0)).all())
        assert float((gradient > 0).float().mean()) > 0.5


def test_over_a_hundred_thousand_updates_a_free_sigma_has_a_filter_and_a_finite_gradient() -> None:
    x = walk(100_000, 5, 9).requires_grad_()
    sigma = free_sigma(x)
    assert float(sigma.detach().min()) >= 0.1 - 1e-6
    assert filter_radius(float(sigma.detach().max())) <= 512
    (gradient,) = torch.autograd.grad(sigma.sum(), x)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("x", [-math.inf, -3e38, 3e38, math.inf])
def test_at_the_ends_of_floating_point_sigma_and_its_gradient_are_finite(x: float) -> None:
    lower, upper = bounds(equal_range(0, 2.5, 5))
    value = torch.full((5,), x, requires_grad=True)
    for sigma in (constrain(value, lower, upper), free_sigma(value)):
        assert bool((sigma.isfinite() & (sigma > 0)).all())
        (gradient,) = torch.autograd.grad(sigma.sum(), value)
        assert bool(gradient.isfinite().all())
