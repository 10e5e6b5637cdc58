"""Strips of rows in the cache of one thread: filtered vertically, then horizontally.

A block of columns is walked from top to bottom in strips.  A few rows of a channel at a time are filtered vertically
into rows with margins, and these horizontally; the jet of a strip has basis · channels rows of pixels, one every
`apart` floats.
"""

from __future__ import annotations

from typing import Any

from numba import intp

from seunet.kernels import jobs
from seunet.kernels.compiling.functions import jit
from seunet.kernels.jobs import JOB_BANDS, JOB_BATCH, JOB_FIRST_ROW, JOB_ROWS, JOB_SCALES
from seunet.kernels.loops.filters import (
    Bank,
    Source,
    Target,
    filter_along,
    filter_along_twice,
    filter_down,
    filter_down_twice,
    vector_of,
)
from seunet.kernels.loops.rows import Block, copy_rows, fetch_rows, round_up
from seunet.kernels.vectors.arithmetic import add, fused_multiply_add
from seunet.kernels.vectors.simd import lane_count, lane_sum, load, offset

ROWS_AT_ONCE = jobs.ROWS_AT_ONCE


@jit
def image_rows(
    image: Any, plane: int, ahead: int, block: Block, top: int, rows: int, radius: int, copied: Any
) -> Source:
    """Rows of an image from `top`, to be filtered down; what comes next lies `ahead` floats further on.

    They are read where they lie, if the image has all that the filters see of them and they are whole vectors;
    otherwise they are `copied`, with zeros around.
    """
    lanes, at, ahead = lane_count(image), plane + top * block.width + block.begin, ahead + radius * block.width
    first, pitch = offset(image, at), block.width
    if top - radius < 0 or top + rows + radius > block.height or block.width % lanes != 0:
        fetch_rows(image, at + ahead, block.width, rows, block.end - block.begin)
        copy_rows(image, plane, block, top - radius, top + rows + radius, copied)
        first, pitch = offset(copied, radius * block.pitch + block.margin + block.begin - block.left), block.pitch
        ahead = 0
    return Source(first, pitch, pitch, rows, round_up(block.end - block.begin, lanes) // lanes, ahead)


@jit
def jet_rows(
    image: Any, plane: int, ahead: int, block: Block, top: int, rows: int, bank: Bank, copied: Any, down: Any,
    jets: Any, apart: int,
) -> None:  # fmt: skip
    """The jet of at most ROWS_AT_ONCE rows from `top`: filtered vertically into `down`, from there horizontally.

    Vertical order j is met by the horizontal orders 0 … N − j, one after the other in `jets`.
    """
    between = ROWS_AT_ONCE * block.pitch
    seen = image_rows(image, plane, ahead, block, top, rows, bank.radius, copied)
    first = offset(down, block.margin + block.begin - block.left)
    filter_down(bank, bank.orders, seen, Target(first, between, first, between, block.pitch))
    k = 0
    for j in range(bank.orders):
        jet = offset(jets, k * apart)
        source = Source(offset(down, j * between + block.margin), intp(1), block.pitch, rows, block.vectors, intp(0))
        filter_along(bank, bank.orders - j, source, Target(jet, apart, jet, apart, block.stride))
        k += bank.orders - j


@jit
def jet_rows_and_slope(
    image: Any, plane: int, ahead: int, block: Block, top: int, rows: int, bank: Bank, copied: Any, down: Any,
    jets: Any, apart: int, spread: Any,
) -> float:  # fmt: skip
    """`jet_rows`, and Σ ⟨∂G/∂σ ⋆ f, spread⟩ over the jet, by the product rule ∂(h_i v_j) = ḣ_i v_j + h_i v̇_j.

    `down` has room for v, v̇, and for ḣ_i v_j and h_i v̇_j of one j.
    """
    between, orders = ROWS_AT_ONCE * block.pitch, bank.orders
    slopes_down = offset(down, orders * between)
    slope_h, slope_v = offset(slopes_down, orders * between), offset(slopes_down, 2 * orders * between)
    seen = image_rows(image, plane, ahead, block, top, rows, bank.radius, copied)
    first = block.margin + block.begin - block.left
    target = Target(offset(down, first), between, offset(slopes_down, first), between, block.pitch)
    filter_down_twice(bank, orders, seen, target)
    total, k = 0.0, 0
    for j in range(orders):
        at = j * between + block.margin
        source = Source(offset(down, at), intp(1), block.pitch, rows, block.vectors, intp(0))
        target = Target(offset(jets, k * apart), apart, slope_h, between, block.stride)
        filter_along_twice(bank, orders - j, source, target)
        source = Source(offset(slopes_down, at), intp(1), block.pitch, rows, block.vectors, intp(0))
        filter_along(bank, orders - j, source, Target(slope_v, between, slope_v, between, block.stride))
        for i in range(orders - j):
            h, v, weights = offset(slope_h, i * between), offset(slope_v, i * between), offset(spread, (k + i) * apart)
            total += product_of_sum(h, v, weights, rows * block.stride)
        k += orders - j
    return total


@jit
def product_of_sum(first: Any, second: Any, weights: Any, count: int) -> float:
    """Σ (first + second) · weights, in four sums: one multiply-add need not wait for the last."""
    lanes = lane_count(first)
    a = b = c = d = vector_of(first, 0.0)
    n = 0
    while n + 4 * lanes <= count:
        a = fused_multiply_add(add(load(first, n), load(second, n)), load(weights, n), a)
        n += lanes
        b = fused_multiply_add(add(load(first, n), load(second, n)), load(weights, n), b)
        n += lanes
        c = fused_multiply_add(add(load(first, n), load(second, n)), load(weights, n), c)
        n += lanes
        d = fused_multiply_add(add(load(first, n), load(second, n)), load(weights, n), d)
        n += lanes
    while n + lanes <= count:
        a = fused_multiply_add(add(load(first, n), load(second, n)), load(weights, n), a)
        n += lanes
    total = lane_sum(add(add(a, b), add(c, d)))
    for one in range(n, count):
        total += (first[one] + second[one]) * weights[one]
    return total


@jit
def bank_of_scale(taps: Any, slopes: Any, scale: int, radius: int, orders: int, tap_stride: int) -> Bank:
    """The filters of one scale in the tables of all."""
    at = scale * orders * tap_stride
    return Bank(radius, orders, offset(taps, at), offset(slopes, at), tap_stride)


@jit
def task_place(job: Any, task: int) -> tuple[int, int, int, int]:
    """The rows begin … end, image and scale of a task.  The widest filters go first: the team ends together."""
    bands, batch, first, rows = job[JOB_BANDS], job[JOB_BATCH], job[JOB_FIRST_ROW], job[JOB_ROWS]
    band = task % bands
    scale = job[JOB_SCALES] - 1 - task // (bands * batch)
    return first + band * rows // bands, first + (band + 1) * rows // bands, task // bands % batch, scale
