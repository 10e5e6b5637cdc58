"""Planes of pixels made half or twice as large: max pooling, bilinear upsampling, and the gradient of each.

torch does these pixel by pixel where channels come before pixels; with whole vectors they run at the speed of memory.
Rows pass through a buffer with room behind them, so that the inner loops need no special case at the edge.
"""

from __future__ import annotations

from typing import Any

from numba import types

from seunet.kernels.compiling.functions import worker_function
from seunet.kernels.filter_loops import inlined, jit, vector_of
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
from seunet.kernels.row_loops import copy_row, fill, round_up
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
from seunet.kernels.vectors.simd import fetch_add, float_pointer, lane_count, load, offset, store


@inlined
def pool_plane(large: Any, width: int, small: Any, height: int, small_width: int, row: Any) -> None:
    """small(j, i) = the largest of the 2×2 pixels of `large` from (2j, 2i)."""
    lanes, room = lane_count(large), round_up(2 * small_width, 2 * lane_count(large))
    result = offset(row, 2 * room)
    for j in range(height):
        copy_row(large, 2 * j * width, row, 0, 2 * small_width)
        copy_row(large, (2 * j + 1) * width, row, room, 2 * small_width)
        for i in range(0, small_width, lanes):
            first = maximum(load(row, 2 * i), load(row, room + 2 * i))
            second = maximum(load(row, 2 * i + lanes), load(row, room + 2 * i + lanes))
            store(result, i, maximum(even_lanes(first, second), odd_lanes(first, second)))
        copy_row(result, 0, small, j * small_width, small_width)


@inlined
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


@inlined
def upsample_plane(
    small: Any, height: int, width: int, result: Any, large_height: int, large_width: int, row: Any
) -> None:
    """Bilinear × 2, centres at i + ½: large(2i) = ¼ f(i−1) + ¾ f(i), large(2i+1) = ¾ f(i) + ¼ f(i+1), edges repeated.

    Then the last row and column are repeated or cropped to the size asked for.
    """
    lanes = lane_count(small)
    room = round_up(width + 2, lanes) + lanes
    large_row, far_row = offset(row, room), offset(row, 3 * room)
    for y in range(large_height):
        j = min(y, 2 * height - 1) // 2
        near, far = j, j - 1 if min(y, 2 * height - 1) % 2 == 0 else j + 1
        far = min(max(far, 0), height - 1)
        # Row i of the plane is at row[i + 1], with its edges repeated on both sides.
        # Blended in the buffer, in whole vectors to beyond its end: a pixel's rounding must not depend on its column.
        copy_row(small, near * width, row, 1, width)
        copy_row(small, far * width, far_row, 0, width)
        blend_row(far_row, 0, 0.25, 0.75, row, 1, round_up(width, lanes))
        row[0], row[width + 1] = row[1], row[width]
        for i in range(0, width, lanes):
            centre = multiply(vector_of(row, 0.75), load(row, i + 1))
            even = fused_multiply_add(vector_of(row, 0.25), load(row, i), centre)
            odd = fused_multiply_add(vector_of(row, 0.25), load(row, i + 2), centre)
            store(large_row, 2 * i, interleaved_low(even, odd))
            store(large_row, 2 * i + lanes, interleaved_high(even, odd))
        large_row[2 * width] = large_row[2 * width - 1]
        copy_row(large_row, 0, result, y * large_width, large_width)


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


@inlined
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

    return plane_worker
