"""Strips of rows in the cache of one thread: filtered vertically, then horizontally, copied in and out.

A block of columns is walked from top to bottom in strips.  A few rows of a channel at a time are filtered vertically
into rows with margins, and these horizontally; the jet of a strip has basis · channels rows of pixels, one every
`apart` floats.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from numba import intp

from seunet.kernels import jobs
from seunet.kernels.filter_loops import (
    Bank,
    Source,
    Target,
    filter_along,
    filter_along_twice,
    filter_down,
    filter_down_twice,
    inlined,
    jit,
    vector_of,
)
from seunet.kernels.simd import (
    add,
    fetch_ahead,
    floats_to_line,
    fused_multiply_add,
    lane_count,
    lane_sum,
    load,
    maximum,
    offset,
    splat,
    store,
    store_first,
    store_past,
)

Block = namedtuple("Block", "height width left columns vectors stride pitch margin begin end")
"""Where a strip is: a plane of height × width pixels, the block's first column, number of columns and
vectors per row, the floats between the rows of a jet, and those between rows with a `margin` on both sides; the columns
that are seen.  Two rows share a vector where it holds both."""


round_up = jit(jobs.round_up)

ROWS_AT_ONCE = jobs.ROWS_AT_ONCE


@inlined
def row_room(wide: int, radius: int, lanes: int) -> int:
    """Floats of a row with `radius` more on both sides, all in whole vectors."""
    return wide + 2 * round_up(radius, lanes)


@inlined
def copy_rest(source: Any, at: int, target: Any, to: int, whole: int, count: int) -> None:
    """What is left of a row behind its whole vectors: the last vector again, where there is one."""
    lanes = lane_count(source)
    if whole == 0:
        for c in range(count):
            target[to + c] = source[at + c]
    elif whole < count:
        store(target, to + count - lanes, load(source, at + count - lanes))


@jit
def copy_row(source: Any, at: int, target: Any, to: int, count: int) -> None:
    """target[to:to + count] = source[at:at + count]"""
    lanes = lane_count(source)
    whole = count // lanes * lanes
    for c in range(0, whole, lanes):
        store(target, to + c, load(source, at + c))
    copy_rest(source, at, target, to, whole, count)


@jit
def fill(target: Any, at: int, count: int) -> None:
    """target[at:at + count] = 0"""
    for c in range(count):
        target[at + c] = 0.0


@inlined
def fetch_rows(image: Any, at: int, width: int, rows: int, count: int) -> None:
    """Ask for rows that are needed soon."""
    lanes = lane_count(image)
    for y in range(rows):
        for c in range(0, count, lanes):
            fetch_ahead(image, at + y * width + c)
        fetch_ahead(image, at + y * width + count - 1)


@jit
def copy_rows(image: Any, plane: int, block: Block, first: int, last: int, target: Any) -> None:
    """What is seen of the rows first … last − 1, zeros where the image ends, into rows with margins."""
    begin, end = block.begin, block.end
    for y in range(first, last):
        at = (y - first) * block.pitch + block.margin + begin - block.left
        if 0 <= y < block.height:
            copy_row(image, plane + y * block.width + begin, target, at, end - begin)
        else:
            fill(target, at, end - begin)


@inlined
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


@inlined
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


@inlined
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


@inlined
def finished(value: Any, is_affine: bool, scale: Any, shift: Any, zero: Any, relu: bool) -> Any:
    """a·y + b and max(·, 0), each where asked for."""
    if is_affine:
        value = fused_multiply_add(scale, value, shift)
    return maximum(value, zero) if relu else value


@jit
def write_rows(
    source: Any, block: Block, count: int, target: Any, at: int, affine: Any, scale_at: int, shift_at: int, relu: bool
) -> None:
    """Copy the rows of a strip to the result, `finished` by a and b at these places (none where `scale_at` < 0).

    Whole cache lines go past the caches.
    """
    lanes, is_affine = lane_count(source), scale_at >= 0
    scale, shift, zero = vector_of(source, 1.0), vector_of(source, 0.0), vector_of(source, 0.0)
    if is_affine:
        scale, shift = splat(affine[scale_at]), splat(affine[shift_at])
    for y in range(count):
        row, to = y * block.stride, at + y * block.width
        c = min(floats_to_line(target, to), block.columns)
        if c > 0:
            store_first(target, to, finished(load(source, row), is_affine, scale, shift, zero, relu), c)
        while c + lanes <= block.columns:
            store_past(target, to + c, finished(load(source, row + c), is_affine, scale, shift, zero, relu))
            c += lanes
        if c < block.columns:
            rest = finished(load(source, row + c), is_affine, scale, shift, zero, relu)
            store_first(target, to + c, rest, block.columns - c)


@inlined
def whole_vectors(block: Block, count: int, lanes: int) -> int:
    """The floats of so many rows of a jet, in whole vectors."""
    return round_up(count * block.stride, lanes)


@jit
def read_rows(image: Any, plane: int, ahead: int, block: Block, top: int, count: int, target: Any) -> None:
    """The rows of a strip into `target`, zeros behind the last column; what comes next lies `ahead`."""
    for y in range(count):
        at = plane + (top + y) * block.width + block.left
        fetch_rows(image, at + ahead, 0, 1, block.columns)
        copy_row(image, at, target, y * block.stride, block.columns)
        fill(target, y * block.stride + block.columns, block.stride - block.columns)
    fill(target, count * block.stride, whole_vectors(block, count, lane_count(image)) - count * block.stride)


@inlined
def bank_of_scale(taps: Any, slopes: Any, scale: int, radius: int, orders: int, tap_stride: int) -> Bank:
    """The filters of one scale in the tables of all."""
    at = scale * orders * tap_stride
    return Bank(radius, orders, offset(taps, at), offset(slopes, at), tap_stride)


@inlined
def block_from(height: int, width: int, left: int, widest: int, radius: int, lanes: int) -> Block:
    """The block of at most `widest` columns from `left`."""
    columns, margin = min(widest, width - left), round_up(radius, lanes)
    wide, begin = round_up(columns, lanes), max(left - margin, 0)
    end, stride = min(left + wide + margin, width), lanes // 2 if 2 * columns <= lanes else wide
    return Block(height, width, left, columns, wide // lanes, stride, wide + 2 * margin, margin, begin, end)
