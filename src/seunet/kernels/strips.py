"""The fused convolution: a strip of rows is filtered, mixed and written while it is in the cache of one thread.

A block of columns is walked from top to bottom in strips of rows.  For each channel the new rows are filtered
horizontally into a sliding buffer, then vertically into the jet `z` of the strip; one small matrix product mixes the
jets of all channels into the outputs.  The jets, `basis` times larger than the image, never reach main memory.

What a task needs is handed over as one vector of integers (the `Job` of `fused.py` writes it, `JOB_*` below are the
places in it), so that a C function pointer of one argument can run it on any team of threads.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types

from seunet.kernels.passes import filter_even, filter_orders, gram, jit, mix
from seunet.kernels.simd import (
    add,
    fetch_add,
    float_pointer,
    fused_multiply_add,
    lane_count,
    lane_sum,
    load,
    maximum,
    offset,
    splat,
    store,
    store_first,
    subtract,
)

(
    JOB_NEXT_TASK,
    JOB_NEXT_WORKER,
    JOB_TASKS,
    JOB_BATCH,
    JOB_SCALES,
    JOB_INPUT_SCALES,
    JOB_IN,
    JOB_OUT,
    JOB_HEIGHT,
    JOB_WIDTH,
    JOB_ORDER,
    JOB_BLOCK,
    JOB_STRIP,
    JOB_BANDS,
    JOB_RADII,
    JOB_TAPS,
    JOB_SLOPES,
    JOB_TAP_STRIDE,
    JOB_SCRATCH,
    JOB_SCRATCH_FLOATS,
    JOB_IMAGE,
    JOB_RESULT,
    JOB_MATRIX,
    JOB_MATRIX_WIDTH,
    JOB_AFFINE,
    JOB_RELU,
    JOB_GRADIENT,
    JOB_MATRIX_GRADIENT,
    JOB_SIGMA_GRADIENT,
    JOB_SPREAD,
    JOB_LENGTH,
) = range(31)


@jit
def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not below `number`."""
    return (number + multiple - 1) // multiple * multiple


@jit
def task_place(job: Any, task: int) -> tuple[int, int, int]:
    """Which band of rows, image and scale a task is.  The widest filters go first, so that the team ends together."""
    bands, batch = job[JOB_BANDS], job[JOB_BATCH]
    return task % bands, task // bands % batch, job[JOB_SCALES] - 1 - task // (bands * batch)


@jit
def copy_row(source: Any, at: int, target: Any, to: int, count: int) -> None:
    """target[to:to + count] = source[at:at + count]"""
    lanes = lane_count(source)
    whole = count // lanes * lanes
    for c in range(0, whole, lanes):
        store(target, to + c, load(source, at + c))
    for c in range(whole, count):
        target[to + c] = source[at + c]


@jit
def fill(target: Any, at: int, count: int, value: float) -> None:
    """target[at:at + count] = value"""
    for c in range(count):
        target[at + c] = value


@jit
def slide(buffer: Any, orders: int, rows: int, width: int, keep: int) -> None:
    """Move the last `keep` rows of each order's buffer to its top: the halo of the next strip."""
    for n in range(orders):
        top = n * rows * width
        copy_row(buffer, top + (rows - keep) * width, buffer, top, keep * width)


@jit
def filter_rows_horizontally(
    image: Any,
    plane: int,
    height: int,
    width: int,
    left: int,
    columns: int,
    first: int,
    last: int,
    radius: int,
    orders: int,
    taps: Any,
    taps_at: int,
    tap_stride: int,
    row: Any,
    buffer: Any,
    to: int,
    rows: int,
    stride: int,
) -> None:
    """Image rows first … last − 1, columns left …, into rows `to` … of `buffer` [orders, rows, stride]; zeros outside.

    `row` holds one image row with `radius` pixels more on both sides.
    """
    begin, end = max(left - radius, 0), min(left + columns + radius, width)
    for y in range(first, last):
        target = (to + y - first) * stride
        if 0 <= y < height:
            copy_row(image, plane + y * width + begin, row, begin - left + radius, end - begin)
            filter_orders(
                radius, orders, row, radius, 1, taps, taps_at, tap_stride, buffer, target, rows * stride, stride
            )
        else:
            for n in range(orders):
                fill(buffer, n * rows * stride + target, stride, 0.0)


@jit
def filter_rows_vertically(
    buffer: Any,
    rows: int,
    stride: int,
    count: int,
    radius: int,
    orders: int,
    taps: Any,
    taps_at: int,
    tap_stride: int,
    jets: Any,
    apart: int,
) -> None:
    """Rows radius … radius + count − 1 of `buffer` [orders, rows, stride] into `jets`, one every `apart` floats.

    Horizontal order i is met by the vertical orders 0 … N − i, in the order of `maths.jet.jet_orders`.
    """
    k = 0
    for i in range(orders):
        for y in range(count):
            at = (i * rows + y + radius) * stride
            to = k * apart + y * stride
            filter_orders(
                radius, orders - i, buffer, at, stride, taps, taps_at, tap_stride, jets, to, apart, stride
            )
        k += orders - i


@jit
def write_rows(
    source: Any, stride: int, count: int, target: Any, at: int, width: int, columns: int, affine: Any, scale_at: int,
    shift_at: int, apply_affine: bool, relu: bool
) -> None:
    """Copy rows of a strip to the result, with an optional a·y + b and max(·, 0) on the way."""
    lanes = lane_count(source)
    zero = subtract(load(source, 0), load(source, 0))
    for y in range(count):
        for c in range(0, columns, lanes):
            value = load(source, y * stride + c)
            if apply_affine:
                value = fused_multiply_add(splat(affine[scale_at]), value, splat(affine[shift_at]))
            if relu:
                value = maximum(value, zero)
            if c + lanes <= columns:
                store(target, at + y * width + c, value)
            else:
                store_first(target, at + y * width + c, value, columns - c)


@jit
def forward_task(
    job: Any, task: int, scratch: Any, image: Any, result: Any, taps: Any, matrix: Any, affine: Any, radii: Any
) -> None:
    """One band of rows of one group of one image: result = mix(jet(image))."""
    channels, outputs, height, width = job[JOB_IN], job[JOB_OUT], job[JOB_HEIGHT], job[JOB_WIDTH]
    orders, strip, scales = job[JOB_ORDER] + 1, job[JOB_STRIP], job[JOB_SCALES]
    basis = orders * (orders + 1) // 2
    band, image_index, scale = task_place(job, task)
    begin, end = band * height // job[JOB_BANDS], (band + 1) * height // job[JOB_BANDS]
    input_scale = scale if job[JOB_INPUT_SCALES] > 1 else 0
    radius, tap_stride = radii[scale], job[JOB_TAP_STRIDE]
    taps_at = scale * orders * tap_stride

    lanes = lane_count(image)
    wide = min(round_up(width, lanes), job[JOB_BLOCK])
    rows = strip + 2 * radius
    single = strip >= end - begin
    # An odd number of cache lines between the rows of a matrix keeps them out of each other's cache sets.
    apart = strip * wide + lanes
    row = scratch
    buffer = offset(row, wide + 2 * radius + lanes)
    jets = offset(buffer, orders * rows * wide * (1 if single else channels))
    mixed = offset(jets, basis * channels * apart)
    input_planes = (image_index * job[JOB_INPUT_SCALES] + input_scale) * channels
    output_planes = (image_index * scales + scale) * outputs

    for left in range(0, width, job[JOB_BLOCK]):
        columns = min(job[JOB_BLOCK], width - left)
        stride = round_up(columns, lanes)
        sliding = 0 if single else orders * rows * stride
        fill(row, 0, stride + 2 * radius + lanes, 0.0)
        for top in range(begin, end, strip):
            count = min(strip, end - top)
            for channel in range(channels):
                here = offset(buffer, channel * sliding)
                first, to = top - radius, 0
                if top > begin:
                    slide(here, orders, rows, stride, 2 * radius)
                    first, to = top + radius, 2 * radius
                filter_rows_horizontally(
                    image, (input_planes + channel) * height * width, height, width, left, columns, first,
                    top + count + radius, radius, orders, taps, taps_at, tap_stride, row, here, to, rows, stride,
                )
                filter_rows_vertically(
                    here, rows, stride, count, radius, orders, taps, taps_at, tap_stride,
                    offset(jets, channel * apart), channels * apart,
                )
            mix(matrix, job[JOB_MATRIX_WIDTH], basis * channels, jets, apart, count * stride, mixed, apart)
            for output in range(outputs):
                write_rows(
                    offset(mixed, output * apart), stride, count, result,
                    ((output_planes + output) * height + top) * width + left, width, columns, affine,
                    scale * outputs + output, (scales + scale) * outputs + output,
                    job[JOB_AFFINE] != 0, job[JOB_RELU] != 0,
                )


@jit
def copy_strip(
    image: Any, plane: int, width: int, left: int, columns: int, top: int, count: int, stride: int, target: Any
) -> None:
    """Rows top …, columns left … of a plane into `target` [count, stride], zeros behind the last column."""
    for y in range(count):
        copy_row(image, plane + (top + y) * width + left, target, y * stride, columns)
        fill(target, y * stride + columns, stride - columns, 0.0)


@jit
def sigma_slope(
    buffer: Any, slope_buffer: Any, rows: int, stride: int, count: int, radius: int, orders: int, taps: Any,
    slopes: Any, taps_at: int, tap_stride: int, spread: Any, apart: int, row: Any,
) -> float:
    """Σ ⟨∂G/∂σ ⋆ f, spread⟩ over the jet, by the product rule ∂(v_j h_i) = v̇_j h_i + v_j ḣ_i.

    `buffer` holds h_i ⋆ f, `slope_buffer` holds ḣ_i ⋆ f; `row` has room for 2·orders rows.
    """
    lanes = lane_count(buffer)
    fill(row, 0, lanes, 0.0)
    total = load(row, 0)
    k = 0
    for i in range(orders):
        vertical = orders - i
        for y in range(count):
            at = (i * rows + y + radius) * stride
            filter_orders(
                radius, vertical, buffer, at, stride, slopes, taps_at, tap_stride, row, 0, stride, stride
            )
            filter_orders(
                radius, vertical, slope_buffer, at, stride, taps, taps_at, tap_stride, row, vertical * stride,
                stride, stride,
            )
            for j in range(vertical):
                weights = (k + j) * apart + y * stride
                for c in range(0, stride, lanes):
                    slope = add(load(row, j * stride + c), load(row, (vertical + j) * stride + c))
                    total = fused_multiply_add(slope, load(spread, weights + c), total)
        k += vertical
    return lane_sum(total)


@jit
def backward_task(job: Any, task: int, scratch: Any, image: Any, result: Any, taps: Any, slopes: Any, matrix: Any,
                  spread_matrix: Any, gradient: Any, matrix_gradient: Any, sigma_gradient: Any, radii: Any) -> None:
    """One group of one image: from ∂L/∂y the gradients in the image, the coefficients and σ.

    With z = jet(∂L/∂y) and the signs of the adjoint in `matrix`:  ∂L/∂x = mix(z),  ∂L/∂α = ⟨z, x⟩ and, with
    w = spread(x) = αx,  ∂L/∂σ = ⟨∂z/∂σ, w⟩.  Only x is needed from the forward pass.
    """
    channels, outputs, height, width = job[JOB_IN], job[JOB_OUT], job[JOB_HEIGHT], job[JOB_WIDTH]
    orders, strip, scales = job[JOB_ORDER] + 1, job[JOB_STRIP], job[JOB_SCALES]
    basis = orders * (orders + 1) // 2
    band, image_index, scale = task_place(job, task)
    begin, end = band * height // job[JOB_BANDS], (band + 1) * height // job[JOB_BANDS]
    input_scale = scale if job[JOB_INPUT_SCALES] > 1 else 0
    radius = radii[scale]
    tap_stride = job[JOB_TAP_STRIDE]
    taps_at = scale * orders * tap_stride
    wants_image, wants_matrix = job[JOB_RESULT] != 0, job[JOB_MATRIX_GRADIENT] != 0
    wants_sigma = job[JOB_SIGMA_GRADIENT] != 0

    lanes = lane_count(image)
    wide = min(round_up(width, lanes), job[JOB_BLOCK])
    rows = strip + 2 * radius
    most = orders * rows * wide
    apart = strip * wide + lanes
    jet_rows, image_rows = round_up(basis * outputs, 4), round_up(channels, 4)
    single = strip >= end - begin
    kept = 1 if single else outputs
    # The slopes of every output wait for `spread`, so they are kept even where one strip is the whole image.
    slope_kept = outputs if wants_sigma else 0
    row = scratch
    row_room = max(wide + 2 * radius + lanes, 2 * orders * wide)
    buffer = offset(row, row_room)
    slope_buffer = offset(buffer, (outputs if wants_sigma else kept) * most)
    jets = offset(slope_buffer, slope_kept * most)
    pixels = offset(jets, jet_rows * apart)
    mixed = offset(pixels, image_rows * apart)
    image_at = (image_index * job[JOB_INPUT_SCALES] + input_scale) * channels
    result_at = (image_index * scales + scale) * channels
    gradient_at = (image_index * scales + scale) * outputs
    totals = offset(matrix_gradient, task * jet_rows * image_rows if wants_matrix else 0)
    sigma_total = 0.0

    for left in range(0, width, job[JOB_BLOCK]):
        columns = min(job[JOB_BLOCK], width - left)
        stride = round_up(columns, lanes)
        sliding = 0 if single and not wants_sigma else orders * rows * stride
        for top in range(begin, end, strip):
            count = min(strip, end - top)
            pixel_count = count * stride
            for output in range(outputs):
                here, slope_here = offset(buffer, output * sliding), offset(slope_buffer, output * sliding)
                plane = (gradient_at + output) * height * width
                first, to = top - radius, 0
                if top > begin:
                    slide(here, orders, rows, stride, 2 * radius)
                    first, to = top + radius, 2 * radius
                fill(row, 0, stride + 2 * radius + lanes, 0.0)
                filter_rows_horizontally(
                    gradient, plane, height, width, left, columns, first, top + count + radius, radius, orders, taps,
                    taps_at, tap_stride, row, here, to, rows, stride,
                )
                if wants_sigma:
                    if top > begin:
                        slide(slope_here, orders, rows, stride, 2 * radius)
                    filter_rows_horizontally(
                        gradient, plane, height, width, left, columns, first, top + count + radius, radius, orders,
                        slopes, taps_at, tap_stride, row, slope_here, to, rows, stride,
                    )
                filter_rows_vertically(
                    here, rows, stride, count, radius, orders, taps, taps_at, tap_stride,
                    offset(jets, output * apart), outputs * apart,
                )
            if wants_image:
                mix(matrix, image_rows, basis * outputs, jets, apart, pixel_count, mixed, apart)
                for channel in range(channels):
                    write_rows(
                        offset(mixed, channel * apart), stride, count, result,
                        ((result_at + channel) * height + top) * width + left, width, columns, taps, 0, 0, False, False,
                    )
            if wants_matrix or wants_sigma:
                for channel in range(channels):
                    plane = (image_at + channel) * height * width
                    copy_strip(image, plane, width, left, columns, top, count, stride, offset(pixels, channel * apart))
            if wants_matrix:
                gram(jets, jet_rows, apart, pixels, image_rows, apart, pixel_count, totals)
            if wants_sigma:
                # The jets are no longer needed: what α spreads the image to takes their place.
                mix(spread_matrix, jet_rows, channels, pixels, apart, pixel_count, jets, apart)
                for output in range(outputs):
                    sigma_total += sigma_slope(
                        offset(buffer, output * sliding), offset(slope_buffer, output * sliding), rows, stride, count,
                        radius, orders, taps, slopes, taps_at, tap_stride, offset(jets, output * apart),
                        outputs * apart, row,
                    )
    if wants_sigma:
        sigma_gradient[task] = sigma_total


def make_worker(dtype: types.Float, backward: bool) -> Any:
    """A C function void(job): take the next task until none is left."""

    dtype_bytes = dtype.bitwidth // 8

    @numba.cfunc(types.void(types.CPointer(types.intp)), cache=True, nopython=True)
    def worker(job: Any) -> None:
        mine = fetch_add(offset(job, JOB_NEXT_WORKER), 1)
        scratch = float_pointer(job[JOB_SCRATCH] + mine * job[JOB_SCRATCH_FLOATS] * dtype_bytes, dtype)
        image, result = float_pointer(job[JOB_IMAGE], dtype), float_pointer(job[JOB_RESULT], dtype)
        taps, matrix = float_pointer(job[JOB_TAPS], dtype), float_pointer(job[JOB_MATRIX], dtype)
        radii = offset(job, JOB_LENGTH)
        while True:
            task = fetch_add(offset(job, JOB_NEXT_TASK), 1)
            if task >= job[JOB_TASKS]:
                break
            if backward:
                backward_task(
                    job, task, scratch, image, result, taps, float_pointer(job[JOB_SLOPES], dtype), matrix,
                    float_pointer(job[JOB_SPREAD], dtype), float_pointer(job[JOB_GRADIENT], dtype),
                    float_pointer(job[JOB_MATRIX_GRADIENT], dtype), float_pointer(job[JOB_SIGMA_GRADIENT], dtype),
                    radii,
                )
            else:
                forward_task(
                    job, task, scratch, image, result, taps, matrix, float_pointer(job[JOB_AFFINE], dtype), radii
                )

    return worker
