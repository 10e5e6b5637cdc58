"""The innermost loops: 1-D symmetric and antisymmetric filters, and the two matrix products that mix their outputs.

Everything here works on pointers to buffers of one thread that fit its cache, in whole vectors (`simd.py`).
"""

from __future__ import annotations

from typing import Any

import numba

from seunet.kernels.filter_groups import FILTERED_AT_ONCE, MIXED_AT_ONCE, OUTPUTS_AT_ONCE, filter_group, mix_group
from seunet.kernels.simd import (
    fused_multiply_add,
    lane_count,
    lane_sum,
    load,
    multiply,
    offset,
    splat,
)

jit = numba.njit(nogil=True, error_model="numpy")
"""No GIL: a team of threads runs these.  Not kept on disk one by one: the worker that calls them is."""

inlined = numba.njit(nogil=True, error_model="numpy", inline="always")
"""A part of the function that calls it."""


@jit
def vector_of(pointer: Any, value: float) -> Any:
    """A vector of `value` in the type of what `pointer` points to."""
    return splat(type(pointer[0])(value))


def _filter_together(orders: int) -> Any:
    """So many derivatives, up to three, of a run of whole vectors."""
    one, several = filter_group(orders, 1), filter_group(orders, FILTERED_AT_ONCE)

    @jit
    def filter_run(
        bank: Any, n: int, source: Any, at: int, step: int, target: Any, to: int, apart: int, count: int
    ) -> None:
        lanes, taps = lane_count(source), offset(bank.taps, n * bank.tap_stride)
        c = 0
        while c + FILTERED_AT_ONCE * lanes <= count:
            several(bank.radius, source, at + c, step, taps, bank.tap_stride, target, to + n * apart + c, apart)
            c += FILTERED_AT_ONCE * lanes
        while c < count:
            one(bank.radius, source, at + c, step, taps, bank.tap_stride, target, to + n * apart + c, apart)
            c += lanes

    return filter_run


_filter_1, _filter_2, _filter_3 = (_filter_together(orders) for orders in (1, 2, 3))


@inlined
def filter_orders(
    bank: Any, orders: int, source: Any, at: int, step: int, target: Any, to: int, apart: int, count: int
) -> None:
    """Derivatives 0 … orders − 1 of `count` floats by the filters of `bank`: order n into target[to + n·apart + c]."""
    n = 0
    while orders - n > 3:
        _filter_2(bank, n, source, at, step, target, to, apart, count)
        n += 2
    if orders - n == 1:
        _filter_1(bank, n, source, at, step, target, to, apart, count)
    elif orders - n == 2:
        _filter_2(bank, n, source, at, step, target, to, apart, count)
    else:
        _filter_3(bank, n, source, at, step, target, to, apart, count)


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


@jit
def gram(
    left: Any, left_rows: int, left_stride: int, right: Any, right_rows: int, right_stride: int, count: int, target: Any
) -> None:
    """target[i, j] += Σ_n left[i, n] · right[j, n];  left_rows a multiple of 4, right_rows of 2."""
    lanes = lane_count(left)
    for i in range(0, left_rows, 4):
        l0, l1, l2, l3 = i * left_stride, (i + 1) * left_stride, (i + 2) * left_stride, (i + 3) * left_stride
        for j in range(0, right_rows, 2):
            r0, r1 = j * right_stride, (j + 1) * right_stride
            x0, x1 = load(right, r0), load(right, r1)
            y0, y1, y2, y3 = load(left, l0), load(left, l1), load(left, l2), load(left, l3)
            s00, s01, s10, s11 = multiply(y0, x0), multiply(y0, x1), multiply(y1, x0), multiply(y1, x1)
            s20, s21, s30, s31 = multiply(y2, x0), multiply(y2, x1), multiply(y3, x0), multiply(y3, x1)
            for n in range(lanes, count, lanes):
                x0, x1 = load(right, r0 + n), load(right, r1 + n)
                y0, y1 = load(left, l0 + n), load(left, l1 + n)
                y2, y3 = load(left, l2 + n), load(left, l3 + n)
                s00, s01 = fused_multiply_add(y0, x0, s00), fused_multiply_add(y0, x1, s01)
                s10, s11 = fused_multiply_add(y1, x0, s10), fused_multiply_add(y1, x1, s11)
                s20, s21 = fused_multiply_add(y2, x0, s20), fused_multiply_add(y2, x1, s21)
                s30, s31 = fused_multiply_add(y3, x0, s30), fused_multiply_add(y3, x1, s31)
            target[i * right_rows + j] += lane_sum(s00)
            target[i * right_rows + j + 1] += lane_sum(s01)
            target[(i + 1) * right_rows + j] += lane_sum(s10)
            target[(i + 1) * right_rows + j + 1] += lane_sum(s11)
            target[(i + 2) * right_rows + j] += lane_sum(s20)
            target[(i + 2) * right_rows + j + 1] += lane_sum(s21)
            target[(i + 3) * right_rows + j] += lane_sum(s30)
            target[(i + 3) * right_rows + j + 1] += lane_sum(s31)
