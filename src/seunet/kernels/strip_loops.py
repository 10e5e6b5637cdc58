"""Strips of rows in the cache of one thread: filtered horizontally, then vertically, copied in and out.

A block of columns is walked from top to bottom in strips.  The horizontally filtered rows of a channel lie in a
sliding buffer [orders, rows, stride]; the jet of a strip has basis · channels rows of pixels, one every `apart` floats.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from numba import intp

from seunet.kernels import jobs
from seunet.kernels.filter_loops import filter_orders, inlined, jit, vector_of
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

Bank = namedtuple("Bank", "radius orders taps tap_stride")
"""The 1-D filters of one scale: order n at taps[n · tap_stride …]."""

Block = namedtuple("Block", "height width left columns stride rows")
"""Where a strip is: a plane of height × width pixels, the block's first column and number of columns, the floats
between the rows of a buffer, and how many rows a sliding buffer has."""


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
def copy_row_ahead(source: Any, at: int, target: Any, to: int, count: int, ahead: int) -> None:
    """`copy_row`, with what lies `ahead` of it on its way to the cache."""
    lanes = lane_count(source)
    whole = count // lanes * lanes
    for c in range(0, whole, lanes):
        fetch_ahead(source, at + ahead + c)
        store(target, to + c, load(source, at + c))
    # A run that does not begin with a cache line ends in one more.
    fetch_ahead(source, at + ahead + count - 1)
    copy_rest(source, at, target, to, whole, count)


@jit
def fill(target: Any, at: int, count: int) -> None:
    """target[at:at + count] = 0"""
    for c in range(count):
        target[at + c] = 0.0


@inlined
def slide(buffer: Any, orders: int, block: Block, keep: int) -> None:
    """Move the last `keep` rows of each order's buffer to its top: the halo of the next strip."""
    for n in range(orders):
        top = n * block.rows * block.stride
        copy_row(buffer, top + (block.rows - keep) * block.stride, buffer, top, keep * block.stride)


@inlined
def filter_rows_horizontally(
    image: Any, plane: int, ahead: int, block: Block, first: int, last: int, bank: Bank, row: Any, buffer: Any, to: int
) -> None:
    """Image rows first … last − 1 of the block into rows `to` … of `buffer`; zeros outside the image.

    What comes next lies `ahead` floats further on and is fetched meanwhile.

    `row` holds one image row with `radius` pixels more on both sides, zero where the image ends.
    """
    begin = max(block.left - bank.radius, 0)
    end = min(block.left + block.columns + bank.radius, block.width)
    lanes = lane_count(image)
    room, margin, apart = (
        row_room(block.stride, bank.radius, lanes),
        round_up(bank.radius, lanes),
        block.rows * block.stride,
    )
    for y in range(first, last, ROWS_AT_ONCE):
        several = min(ROWS_AT_ONCE, last - y)
        for r in range(several):
            at = r * room + margin + begin - block.left
            if 0 <= y + r < block.height:
                copy_row_ahead(image, plane + (y + r) * block.width + begin, row, at, end - begin, ahead)
            else:
                fill(row, at, end - begin)
        target = (to + y - first) * block.stride
        for r in range(several):
            at, to_row = r * room + margin, target + r * block.stride
            filter_orders(bank, bank.orders, row, at, intp(1), buffer, to_row, apart, block.stride)


@inlined
def next_rows(
    image: Any,
    plane: int,
    ahead: int,
    block: Block,
    top: int,
    count: int,
    is_first: bool,
    bank: Bank,
    row: Any,
    buffer: Any,
) -> None:
    """Bring a sliding buffer to the strip of `count` rows from `top`: its halo is kept from the strip before."""
    kept = 0 if is_first else 2 * bank.radius
    if not is_first:
        slide(buffer, bank.orders, block, kept)
    first, last = top - bank.radius + kept, top + count + bank.radius
    filter_rows_horizontally(image, plane, ahead, block, first, last, bank, row, buffer, kept)


@inlined
def filter_rows_vertically(buffer: Any, block: Block, count: int, bank: Bank, jets: Any, apart: int) -> None:
    """The `count` rows of a strip into `jets`.

    Horizontal order i is met by the vertical orders 0 … N − i, in the order of `maths.gaussian.jet_orders`.
    """
    k = 0
    for i in range(bank.orders):
        at = (i * block.rows + bank.radius) * block.stride
        # The rows of a strip lie one after the other: filtered as one.
        filter_orders(bank, bank.orders - i, buffer, at, block.stride, jets, k * apart, apart, count * block.stride)
        k += bank.orders - i


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


@jit
def read_rows(image: Any, plane: int, block: Block, top: int, count: int, target: Any) -> None:
    """The rows of a strip into `target`, zeros behind the last column."""
    for y in range(count):
        copy_row(image, plane + (top + y) * block.width + block.left, target, y * block.stride, block.columns)
        fill(target, y * block.stride + block.columns, block.stride - block.columns)


@jit
def sigma_slope(
    buffer: Any,
    slope_buffer: Any,
    block: Block,
    count: int,
    bank: Bank,
    slope_bank: Bank,
    spread: Any,
    apart: int,
    row: Any,
) -> float:
    """Σ ⟨∂G/∂σ ⋆ f, spread⟩ over the jet, by the product rule ∂(v_j h_i) = v̇_j h_i + v_j ḣ_i.

    `buffer` holds h_i ⋆ f, `slope_buffer` holds ḣ_i ⋆ f; `row` has room for 2·orders rows.
    """
    lanes, stride = lane_count(buffer), block.stride
    fill(row, 0, lanes)
    total = load(row, 0)
    k = 0
    for i in range(bank.orders):
        vertical = bank.orders - i
        for y in range(count):
            at = (i * block.rows + y + bank.radius) * stride
            filter_orders(slope_bank, vertical, buffer, at, stride, row, 0, stride, stride)
            filter_orders(bank, vertical, slope_buffer, at, stride, row, vertical * stride, stride, stride)
            for j in range(vertical):
                weights = (k + j) * apart + y * stride
                for c in range(0, stride, lanes):
                    slope = add(load(row, j * stride + c), load(row, (vertical + j) * stride + c))
                    total = fused_multiply_add(slope, load(spread, weights + c), total)
        k += vertical
    return lane_sum(total)


@inlined
def bank_of_scale(taps: Any, scale: int, radius: int, orders: int, tap_stride: int) -> Bank:
    """The filters of one scale in the table of all."""
    return Bank(radius, orders, offset(taps, scale * orders * tap_stride), tap_stride)
