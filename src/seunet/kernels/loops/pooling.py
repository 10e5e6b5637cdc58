"""Planes of pixels made half or twice as large: max pooling and bilinear upsampling.

torch does these pixel by pixel where channels come before pixels; with whole vectors they run at the speed of memory.
Rows pass through a buffer with room behind them, so that the inner loops need no special case at the edge.
"""

from __future__ import annotations

from typing import Any

from numba import types

from seunet.kernels.compiling.functions import jit, worker_function
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
from seunet.kernels.loops.filters import vector_of
from seunet.kernels.loops.pooling_gradients import pool_gradient_plane, upsample_gradient_plane
from seunet.kernels.loops.rows import copy_row, fetch_rows, round_up, store_line
from seunet.kernels.vectors.arithmetic import (
    even_lanes,
    fused_multiply_add,
    interleaved_high,
    interleaved_low,
    maximum,
    multiply,
    odd_lanes,
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
