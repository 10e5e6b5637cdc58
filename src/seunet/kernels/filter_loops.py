"""The innermost loops: 1-D symmetric and antisymmetric filters, and the two matrix products that mix their outputs.

Everything here works on pointers to buffers of one thread that fit its cache, in whole vectors (`simd.py`).
"""

from __future__ import annotations

from typing import Any

import numba

from seunet.kernels.filter_groups import filter_group
from seunet.kernels.simd import (
    fused_multiply_add,
    lane_count,
    lane_sum,
    load,
    multiply,
    offset,
    splat,
    store,
)

jit = numba.njit(nogil=True, error_model="numpy")
"""No GIL: a team of threads runs these.  Not kept on disk one by one: the worker that calls them is."""

inlined = numba.njit(nogil=True, error_model="numpy", inline="always")
"""A part of the function that calls it."""


@jit
def vector_of(pointer: Any, value: float) -> Any:
    """A vector of `value` in the type of what `pointer` points to."""
    return splat(type(pointer[0])(value))


_ONE = [filter_group(orders, 1) for orders in (1, 2, 3)]
_FOUR = [filter_group(orders, 4) for orders in (1, 2, 3)]


def _filter_together(one: Any, four: Any) -> Any:
    """As many derivatives of a run of whole vectors as `one` and `four` compute: four vectors at a time."""

    @jit
    def filter_run(
        bank: Any, n: int, source: Any, at: int, step: int, target: Any, to: int, apart: int, count: int
    ) -> None:
        lanes, taps = lane_count(source), offset(bank.taps, n * bank.tap_stride)
        c = 0
        while c + 4 * lanes <= count:
            four(bank.radius, source, at + c, step, taps, bank.tap_stride, target, to + n * apart + c, apart)
            c += 4 * lanes
        while c < count:
            one(bank.radius, source, at + c, step, taps, bank.tap_stride, target, to + n * apart + c, apart)
            c += lanes

    return filter_run


_filter_1, _filter_2, _filter_3 = (_filter_together(one, four) for one, four in zip(_ONE, _FOUR, strict=True))


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


@jit
def mix(
    matrix: Any, width: int, depth: int, source: Any, source_stride: int, count: int, target: Any, target_stride: int
) -> None:
    """target[m, n] = Σ_k matrix[k, m] · source[k, n],  m < width (a multiple of 4), n < count (whole vectors).

    Four outputs by two vectors are summed in registers: eight multiply-adds for two loads and four broadcasts.
    """
    lanes = lane_count(source)
    n = 0
    while n + 2 * lanes <= count:
        for m in range(0, width, 4):
            first, second = load(source, n), load(source, n + lanes)
            a0, a1 = splat(matrix[m]), splat(matrix[m + 1])
            a2, a3 = splat(matrix[m + 2]), splat(matrix[m + 3])
            s00, s01 = multiply(a0, first), multiply(a0, second)
            s10, s11 = multiply(a1, first), multiply(a1, second)
            s20, s21 = multiply(a2, first), multiply(a2, second)
            s30, s31 = multiply(a3, first), multiply(a3, second)
            for k in range(1, depth):
                row, at = k * width + m, k * source_stride + n
                first, second = load(source, at), load(source, at + lanes)
                a0, a1 = splat(matrix[row]), splat(matrix[row + 1])
                a2, a3 = splat(matrix[row + 2]), splat(matrix[row + 3])
                s00, s01 = fused_multiply_add(a0, first, s00), fused_multiply_add(a0, second, s01)
                s10, s11 = fused_multiply_add(a1, first, s10), fused_multiply_add(a1, second, s11)
                s20, s21 = fused_multiply_add(a2, first, s20), fused_multiply_add(a2, second, s21)
                s30, s31 = fused_multiply_add(a3, first, s30), fused_multiply_add(a3, second, s31)
            to = m * target_stride + n
            store(target, to, s00)
            store(target, to + lanes, s01)
            store(target, to + target_stride, s10)
            store(target, to + target_stride + lanes, s11)
            store(target, to + 2 * target_stride, s20)
            store(target, to + 2 * target_stride + lanes, s21)
            store(target, to + 3 * target_stride, s30)
            store(target, to + 3 * target_stride + lanes, s31)
        n += 2 * lanes
    if n < count:
        for m in range(width):
            total = multiply(splat(matrix[m]), load(source, n))
            for k in range(1, depth):
                total = fused_multiply_add(splat(matrix[k * width + m]), load(source, k * source_stride + n), total)
            store(target, m * target_stride + n, total)


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
