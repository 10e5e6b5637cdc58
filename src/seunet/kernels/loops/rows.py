"""Rows of pixels in the cache of one thread: copied in, with zeros where the image ends, and written out."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from seunet.kernels import jobs
from seunet.kernels.compiling.functions import jit
from seunet.kernels.loops.filters import vector_of
from seunet.kernels.vectors.arithmetic import fused_multiply_add, maximum
from seunet.kernels.vectors.simd import (
    fetch_ahead,
    floats_to_line,
    lane_count,
    load,
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


@jit
def row_room(wide: int, radius: int, lanes: int) -> int:
    """Floats of a row with `radius` more on both sides, all in whole vectors."""
    return wide + 2 * round_up(radius, lanes)


@jit
def store_line(pointer: Any, at: int, value: Any, past: bool) -> None:
    """Write a vector; `past` the caches where it is a whole line."""
    if past:
        store_past(pointer, at, value)
    else:
        store(pointer, at, value)


@jit
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


@jit
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


@jit
def finished(value: Any, is_affine: bool, scale: Any, shift: Any, zero: Any, relu: bool) -> Any:
    """a·y + b and max(·, 0), each where asked for."""
    if is_affine:
        value = fused_multiply_add(scale, value, shift)
    return maximum(value, zero) if relu else value


@jit
def finish_rows(
    rows: Any, many: int, apart: int, count: int, affine: Any, scale_at: int, shift_at: int, relu: bool
) -> None:
    """So many rows of whole vectors, `finished` where they are."""
    for number in range(many):
        scale, shift = splat(affine[scale_at + number]), splat(affine[shift_at + number])
        row = offset(rows, number * apart)
        for n in range(0, count, lane_count(rows)):
            store(row, n, finished(load(row, n), True, scale, shift, vector_of(rows, 0.0), relu))


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


@jit
def block_from(height: int, width: int, left: int, widest: int, radius: int, lanes: int) -> Block:
    """The block of at most `widest` columns from `left`."""
    columns, margin = min(widest, width - left), round_up(radius, lanes)
    wide, begin = round_up(columns, lanes), max(left - margin, 0)
    end, stride = min(left + wide + margin, width), lanes // 2 if 2 * columns <= lanes else wide
    return Block(height, width, left, columns, wide // lanes, stride, wide + 2 * margin, margin, begin, end)
