"""Planes of pixels made half or twice as large: max pooling, bilinear upsampling, and the gradient of each.

torch does these pixel by pixel where channels come before pixels; with whole vectors they run at the speed of memory.
Rows pass through a buffer with room behind them, so that the inner loops need no special case at the edge.
"""

from __future__ import annotations

from typing import Any

from numba import types

from seunet.kernels.compiling.functions import jit, worker_function
from seunet.kernels.filter_loops import vector_of
from seunet.kernels.jobs import (
    PLANES_COUNT,
    PLANES_GROUP,
    PLANES_KIND,
    PLANES_LARGE,
    PLANES_LARGE_GROUP,
    PLANES_LARGE_HEIGHT,
    PLANES_LARGE_WIDTH,
    PLANES_NEXT_TASK,
    PLANES_NEXT_WORKER,
    PLANES_RESULT,
    PLANES_SCRATCH,
    PLANES_SCRATCH_FLOATS,
    PLANES_SMALL,
    PLANES_SMALL_HEIGHT,
    PLANES_SMALL_WIDTH,
    POOL,
)
from seunet.kernels.row_loops import copy_row, fetch_rows, fill, round_up, store_line
from seunet.kernels.vectors.arithmetic import (
    add,
    even_lanes,
    fused_multiply_add,
    interleaved_high,
    interleaved_low,
    maximum,
    multiply,
    odd_lanes,
    subtract,
    where_equal,
)
from seunet.kernels.vectors.simd import (
    all_stored,
    fetch_add,
    float_pointer,
    floats_to_line,
    lane_count,
    load,
    offset,
    store,
    store_first,
)

UPSAMPLED_AT_ONCE = 4
"""Rows."""


@jit
def pool_plane(large: Any, width: int, small: Any, height: int, small_width: int, row: Any) -> None:
    """small(j, i) = the largest of the 2×2 pixels of `large` from (2j, 2i)."""
    lanes = lane_count(large)
    whole = small_width // lanes * lanes
    rest = small_width - whole
    for j in range(height):
        at, to = 2 * j * width, j * small_width
        past = floats_to_line(small, to) == 0
        fetch_rows(large, at + 2 * width, width, 2, width)
        for i in range(0, whole, lanes):
            store_line(small, to + i, pooled(large, at + 2 * i, at + width + 2 * i), past)
        if rest > 0:
            copy_row(large, at + 2 * whole, row, 0, 2 * rest)
            copy_row(large, at + width + 2 * whole, row, 2 * lanes, 2 * rest)
            store_first(small, to + whole, pooled(row, 0, 2 * lanes), rest)


@jit
def pooled(rows: Any, top: int, bottom: int) -> Any:
    """The largest of each 2×2 pixels of two vectors from `top` and two from `bottom`."""
    lanes = lane_count(rows)
    first = maximum(load(rows, top), load(rows, bottom))
    second = maximum(load(rows, top + lanes), load(rows, bottom + lanes))
    return maximum(even_lanes(first, second), odd_lanes(first, second))


@jit
def pool_gradient_plane(
    large: Any, large_height: int, width: int, gradient: Any, height: int, small_width: int, result: Any, row: Any
) -> None:
    """The gradient goes to the first of the 2×2 pixels that is the largest; 0 to the others and to an odd last row."""
    lanes, room = lane_count(large), round_up(2 * small_width, 2 * lane_count(large))
    incoming, top, bottom = offset(row, 2 * room), offset(row, 3 * room), offset(row, 4 * room)
    for j in range(height):
        copy_row(large, 2 * j * width, row, 0, 2 * small_width)
        copy_row(large, (2 * j + 1) * width, row, room, 2 * small_width)
        copy_row(gradient, j * small_width, incoming, 0, small_width)
        for i in range(0, small_width, lanes):
            a, b = load(row, 2 * i), load(row, 2 * i + lanes)
            c, d = load(row, room + 2 * i), load(row, room + 2 * i + lanes)
            p, q, r, s = even_lanes(a, b), odd_lanes(a, b), even_lanes(c, d), odd_lanes(c, d)
            largest = maximum(maximum(p, q), maximum(r, s))
            rest = load(incoming, i)
            zero = subtract(rest, rest)
            at_p, rest = where_equal(p, largest, rest, zero), where_equal(p, largest, zero, rest)
            at_q, rest = where_equal(q, largest, rest, zero), where_equal(q, largest, zero, rest)
            at_r, rest = where_equal(r, largest, rest, zero), where_equal(r, largest, zero, rest)
            at_s = where_equal(s, largest, rest, zero)
            store(top, 2 * i, interleaved_low(at_p, at_q))
            store(top, 2 * i + lanes, interleaved_high(at_p, at_q))
            store(bottom, 2 * i, interleaved_low(at_r, at_s))
            store(bottom, 2 * i + lanes, interleaved_high(at_r, at_s))
        copy_row(top, 0, result, 2 * j * width, 2 * small_width)
        copy_row(bottom, 0, result, (2 * j + 1) * width, 2 * small_width)
        if width > 2 * small_width:
            result[2 * j * width + width - 1] = 0.0
            result[(2 * j + 1) * width + width - 1] = 0.0
    if large_height > 2 * height:
        fill(result, (large_height - 1) * width, width)


@jit
def upsample_plane(
    small: Any, height: int, width: int, result: Any, large_height: int, large_width: int, row: Any
) -> None:
    """Bilinear × 2, centres at i + ½: large(2i) = ¼ f(i−1) + ¾ f(i), large(2i+1) = ¾ f(i) + ¼ f(i+1), edges repeated.

    Then the last row and column are repeated or cropped to the size asked for.
    """
    lanes = lane_count(small)
    room = round_up(width + 2, lanes) + lanes
    rest = offset(row, UPSAMPLED_AT_ONCE * room)
    for first in range(0, large_height, UPSAMPLED_AT_ONCE):
        # Several rows at a time: a load must not wait for the store just before it.
        last = min(first + UPSAMPLED_AT_ONCE, large_height)
        for y in range(first, last):
            j = min(y, 2 * height - 1) // 2
            far = j - 1 if min(y, 2 * height - 1) % 2 == 0 else j + 1
            far = min(max(far, 0), height - 1)
            blended_row(small, j * width, far * width, width, offset(row, (y - first) * room), rest)
        for y in range(first, last):
            widen_row(offset(row, (y - first) * room), width, result, y * large_width, large_width, rest)


@jit
def blended_row(small: Any, near: int, far: int, width: int, row: Any, rest: Any) -> None:
    """row[i + 1] = ¾ small[near + i] + ¼ small[far + i], edges repeated.

    What fills no vector is computed in one too: a pixel's rounding must not depend on its column.
    """
    lanes = lane_count(small)
    whole = width // lanes * lanes
    three_quarters, quarter = vector_of(small, 0.75), vector_of(small, 0.25)
    for c in range(0, whole, lanes):
        kept = multiply(three_quarters, load(small, near + c))
        store(row, c + 1, fused_multiply_add(quarter, load(small, far + c), kept))
    if whole < width:
        copy_row(small, near + whole, rest, 0, width - whole)
        copy_row(small, far + whole, rest, lanes, width - whole)
        kept = multiply(three_quarters, load(rest, 0))
        store(row, whole + 1, fused_multiply_add(quarter, load(rest, lanes), kept))
    row[0], row[width + 1] = row[1], row[width]


@jit
def widen_row(row: Any, width: int, result: Any, to: int, large_width: int, rest: Any) -> None:
    """result[2i] = ¼ row[i] + ¾ row[i + 1], result[2i + 1] = ¾ row[i + 1] + ¼ row[i + 2]; the last one repeated."""
    lanes = lane_count(row)
    whole = (width if large_width == 2 * width else min(large_width // 2, width - 1)) // lanes * lanes
    three_quarters, quarter = vector_of(row, 0.75), vector_of(row, 0.25)
    past = floats_to_line(result, to) == 0
    for i in range(0, width, lanes):
        centre = multiply(three_quarters, load(row, i + 1))
        even = fused_multiply_add(quarter, load(row, i), centre)
        odd = fused_multiply_add(quarter, load(row, i + 2), centre)
        if i < whole:
            store_line(result, to + 2 * i, interleaved_low(even, odd), past)
            store_line(result, to + 2 * i + lanes, interleaved_high(even, odd), past)
        else:
            store(rest, 2 * (i - whole), interleaved_low(even, odd))
            store(rest, 2 * (i - whole) + lanes, interleaved_high(even, odd))
    if large_width > 2 * whole:
        rest[2 * (width - whole)] = rest[2 * (width - whole) - 1]
        copy_row(rest, 0, result, to + 2 * whole, large_width - 2 * whole)


@jit
def blend_row(source: Any, at: int, weight: float, keep: float, target: Any, to: int, count: int) -> None:
    """target = keep · target + weight · source"""
    lanes = lane_count(source)
    whole = count // lanes * lanes
    for c in range(0, whole, lanes):
        kept = multiply(vector_of(source, keep), load(target, to + c))
        store(target, to + c, fused_multiply_add(vector_of(source, weight), load(source, at + c), kept))
    for c in range(whole, count):
        target[to + c] = keep * target[to + c] + weight * source[at + c]


@jit
def upsample_gradient_plane(
    large: Any, large_height: int, large_width: int, result: Any, height: int, width: int, row: Any
) -> None:
    """The adjoint: ∂f(i) = ¾ (g(2i) + g(2i+1)) + ¼ (g(2i−1) + g(2i+2)); what was repeated is added up."""
    lanes = lane_count(large)
    room = round_up(2 * width + 2, 2 * lanes) + 2 * lanes
    small_row = offset(row, room)
    for j in range(height):
        fill(row, 0, room)
        for step in range(4):
            y = min(max(2 * j - 1 + step, 0), 2 * height - 1)
            weight = 0.25 if step == 0 or step == 3 else 0.75
            if y < large_height:
                blend_row(large, y * large_width, weight, 1.0, row, 1, large_width)
            if y == 2 * height - 1 and large_height > 2 * height:
                blend_row(large, (y + 1) * large_width, weight, 1.0, row, 1, large_width)
        if large_width > 2 * width:
            row[2 * width] += row[2 * width + 1]
        row[0], row[2 * width + 1] = row[1], row[2 * width]
        for i in range(0, width, lanes):
            first, second = load(row, 2 * i), load(row, 2 * i + lanes)
            third, fourth = load(row, 2 * i + 2), load(row, 2 * i + 2 + lanes)
            middle = add(odd_lanes(first, second), even_lanes(third, fourth))
            outer = add(even_lanes(first, second), odd_lanes(third, fourth))
            total = fused_multiply_add(vector_of(row, 0.75), middle, multiply(vector_of(row, 0.25), outer))
            store(small_row, i, total)
        copy_row(small_row, 0, result, j * width, width)


def make_worker(dtype: types.Float, gradient: bool) -> Any:
    """A C function void(job): take the next plane until none is left."""
    dtype_bytes = dtype.bitwidth // 8

    @worker_function
    def plane_worker(job: Any) -> None:
        mine = fetch_add(offset(job, PLANES_NEXT_WORKER), 1)
        row = float_pointer(job[PLANES_SCRATCH] + mine * job[PLANES_SCRATCH_FLOATS] * dtype_bytes, dtype)
        small, large = float_pointer(job[PLANES_SMALL], dtype), float_pointer(job[PLANES_LARGE], dtype)
        result = float_pointer(job[PLANES_RESULT], dtype)
        height, width = job[PLANES_SMALL_HEIGHT], job[PLANES_SMALL_WIDTH]
        large_height, large_width = job[PLANES_LARGE_HEIGHT], job[PLANES_LARGE_WIDTH]
        group, large_group = job[PLANES_GROUP], job[PLANES_LARGE_GROUP]
        while True:
            plane = fetch_add(offset(job, PLANES_NEXT_TASK), 1)
            if plane >= job[PLANES_COUNT]:
                break
            small_at = plane * height * width
            # The large planes may be a part of the channels of a larger map.
            large_at = (plane // group * large_group + plane % group) * large_height * large_width
            pools = job[PLANES_KIND] == POOL
            if gradient:
                if pools:
                    pool_gradient_plane(
                        offset(large, large_at), large_height, large_width, offset(small, small_at), height, width,
                        offset(result, large_at), row,
                    )  # fmt: skip
                else:
                    upsample_gradient_plane(
                        offset(large, large_at), large_height, large_width, offset(result, small_at), height, width, row
                    )
            elif pools:
                pool_plane(offset(large, large_at), large_width, offset(result, small_at), height, width, row)
            else:
                upsample_plane(
                    offset(small, small_at), height, width, offset(result, large_at), large_height, large_width, row
                )
        all_stored()

    return plane_worker
