"""The gradients of planes made half or twice as large: of max pooling and of bilinear upsampling."""

from __future__ import annotations

from typing import Any

from seunet.kernels.compiling.functions import jit
from seunet.kernels.loops.filters import vector_of
from seunet.kernels.loops.rows import copy_row, fill, round_up
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
from seunet.kernels.vectors.simd import lane_count, load, offset, store


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
