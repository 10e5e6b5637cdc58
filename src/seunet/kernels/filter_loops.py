"""The innermost loops: 1-D symmetric and antisymmetric filters, and the two matrix products that mix their outputs.

Everything here works on pointers to buffers of one thread that fit its cache, in whole vectors (`simd.py`).
"""

from __future__ import annotations

from typing import Any

import numba

from seunet.kernels.filter_groups import (
    COLUMNS_AT_ONCE,
    FILTERED_AT_ONCE,
    MIXED_AT_ONCE,
    OUTPUTS_AT_ONCE,
    filter_group,
    gram_group,
    mix_group,
)
from seunet.kernels.simd import (
    lane_count,
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
