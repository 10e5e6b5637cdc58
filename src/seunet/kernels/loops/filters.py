"""The innermost loops: 1-D symmetric and antisymmetric filters, and the two matrix products that mix their outputs.

Everything here works on pointers to buffers of one thread that fit its cache, in whole vectors (`simd.py`).
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from seunet.kernels.compiling.functions import jit
from seunet.kernels.vectors.code import COLUMNS_AT_ONCE, MIXED_AT_ONCE, OUTPUTS_AT_ONCE, WIDE, filtered_at_once
from seunet.kernels.vectors.filter_groups import filter_group
from seunet.kernels.vectors.product_groups import gram_group, mix_group
from seunet.kernels.vectors.simd import fetch_ahead, lane_count, offset, splat

Bank = namedtuple("Bank", "radius orders taps slopes tap_stride")
"""The 1-D filters of one scale: order n at taps[n · tap_stride …], its derivative in σ at slopes[…]."""


@jit
def vector_of(pointer: Any, value: float) -> Any:
    """A vector of `value` in the type of what `pointer` points to."""
    return splat(type(pointer[0])(value))


Source = namedtuple("Source", "first step pitch rows vectors ahead")
"""A rectangle of whole vectors that is filtered: its first pixel, the floats from a pixel to the next one along the
filter and from a row to the next, rows, vectors per row; what is needed next lies `ahead` (0: nothing to fetch)."""

Target = namedtuple("Target", "first apart slope_first slope_apart pitch")
"""Where it goes: order n of row y to first[n·apart + y·pitch …], by the slopes of the filters to slope_first[…]."""


def _filter_loaded(orders: int, banks: int) -> Any:
    """So many derivatives, up to three, from loads of each pixel's neighbours."""
    at_once = filtered_at_once(orders * banks)
    several = filter_group(orders, banks, at_once)

    @jit
    def filter_loaded(bank: Bank, n: int, source: Source, target: Target) -> None:
        lanes, taps, together = lane_count(source.first), n * bank.tap_stride, at_once
        outer, outer_step, outer_to, between, between_to = source.rows, source.pitch, target.pitch, lanes, lanes
        length = source.vectors
        if source.vectors % at_once != 0:
            # What is taken together lies one below the other where it does not fill rows.
            outer, outer_step, outer_to, between, between_to = source.vectors, lanes, lanes, source.pitch, target.pitch
            length = source.rows
        if length < at_once:
            together = 1
        step, step_to = (between, between_to) if together > 1 else (0, 0)
        for a in range(outer):
            for b in range(0, length, together):
                # The last ones go back to where they are as many, and are computed twice.
                first = min(b, length - together)
                at, to = a * outer_step + first * between, a * outer_to + first * between_to
                if source.ahead != 0:
                    for number in range(at_once):
                        fetch_ahead(source.first, at + source.ahead + number * step)
                several(
                    bank.radius, offset(source.first, at), source.step, step, offset(bank.taps, taps),
                    offset(bank.slopes, taps), bank.tap_stride, offset(target.first, n * target.apart + to),
                    target.apart, offset(target.slope_first, n * target.slope_apart + to), target.slope_apart,
                    step_to,
                )  # fmt: skip

    return filter_loaded


def _filter_shifted(orders: int, banks: int) -> Any:
    """The same along rows, from registers: rows of whole groups of vectors, a radius of a vector at most."""
    at_once = filtered_at_once(orders * banks)
    shifted = filter_group(orders, banks, at_once, from_registers=True)

    @jit
    def filter_shifted(bank: Bank, n: int, source: Source, target: Target) -> None:
        lanes, taps = lane_count(source.first), n * bank.tap_stride
        for y in range(source.rows):
            for c in range(0, source.vectors * lanes, at_once * lanes):
                to = y * target.pitch + c
                shifted(
                    bank.radius, offset(source.first, y * source.pitch + c), source.step, lanes,
                    offset(bank.taps, taps), offset(bank.slopes, taps), bank.tap_stride,
                    offset(target.first, n * target.apart + to), target.apart,
                    offset(target.slope_first, n * target.slope_apart + to), target.slope_apart, lanes,
                )  # fmt: skip

    return filter_shifted


def _all_orders(one: Any, two: Any, three: Any) -> Any:
    @jit
    def filter_orders(bank: Bank, orders: int, source: Source, target: Target) -> None:
        """The derivatives 0 … orders − 1 of `source`."""
        n = 0
        while orders - n > 3:
            two(bank, n, source, target)
            n += 2
        if orders - n == 1:
            one(bank, n, source, target)
        elif orders - n == 2:
            two(bank, n, source, target)
        else:
            three(bank, n, source, target)

    return filter_orders


def _filters(banks: int) -> tuple[Any, Any]:
    """Down the rows (a step of one row) and along them, by the taps of a bank (1) and by its slopes as well (2)."""
    loaded = _all_orders(*(_filter_loaded(orders, banks) for orders in (1, 2, 3)))
    if not WIDE:
        return loaded, loaded
    shifted, at_once = _all_orders(*(_filter_shifted(orders, banks) for orders in (1, 2, 3))), filtered_at_once(1)

    @jit
    def along(bank: Bank, orders: int, source: Source, target: Target) -> None:
        if source.vectors % at_once == 0 and bank.radius <= lane_count(source.first):
            shifted(bank, orders, source, target)
        else:
            loaded(bank, orders, source, target)

    return loaded, along


filter_down, filter_along = _filters(1)
filter_down_twice, filter_along_twice = _filters(2)


_mix_one, _mix_several = mix_group(1), mix_group(MIXED_AT_ONCE)


@jit
def mix(
    matrix: Any, width: int, depth: int, source: Any, source_stride: int, count: int, target: Any, target_stride: int
) -> None:
    """target[m, n] = Σ_k matrix[m // 4, k, m % 4] · source[k, n],  m < width (a multiple of 4), n < count.

    The count is one of whole vectors.
    """
    lanes = lane_count(source)
    n = 0
    while n < count:
        together = MIXED_AT_ONCE if n + MIXED_AT_ONCE * lanes <= count else 1
        for m in range(0, width, OUTPUTS_AT_ONCE):
            packed, to = offset(matrix, m * depth), m * target_stride + n
            if together == 1:
                _mix_one(depth - 1, packed, source, n, source_stride, target, to, target_stride)
            else:
                _mix_several(depth - 1, packed, source, n, source_stride, target, to, target_stride)
        n += together * lanes


_gram_together = gram_group(COLUMNS_AT_ONCE)


@jit
def gram(
    left: Any, left_rows: int, left_stride: int, right: Any, right_rows: int, right_stride: int, count: int, target: Any
) -> None:
    """target[i, j] += Σ_n left[i, n] · right[j, n];  left_rows and right_rows are multiples of 4."""
    last = count // lane_count(left) - 1
    for i in range(0, left_rows, OUTPUTS_AT_ONCE):
        for j in range(0, right_rows, COLUMNS_AT_ONCE):
            _gram_together(
                last, offset(left, i * left_stride), left_stride, offset(right, j * right_stride), right_stride,
                offset(target, i * right_rows + j), right_rows,
            )  # fmt: skip
