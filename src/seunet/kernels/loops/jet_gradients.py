"""The gradients of the fused convolution, from one pass over each strip: in the image, the coefficients and σ."""

from __future__ import annotations

from typing import Any

from seunet.kernels.compiling.functions import jit
from seunet.kernels.jobs import (
    JOB_BLOCK,
    JOB_HEIGHT,
    JOB_IN,
    JOB_INPUT_SCALES,
    JOB_LENGTH,
    JOB_MATRIX_GRADIENT,
    JOB_ORDERS,
    JOB_OUT,
    JOB_RESULT,
    JOB_SCALES,
    JOB_SIGMA_GRADIENT,
    JOB_STRIP,
    JOB_TAP_STRIDE,
    JOB_WIDTH,
    ROWS_AT_ONCE,
)
from seunet.kernels.loops.filters import gram, mix
from seunet.kernels.loops.rows import block_from, fill, read_rows, round_up, row_room, whole_vectors, write_rows
from seunet.kernels.loops.strips import bank_of_scale, jet_rows, jet_rows_and_slope, task_place
from seunet.kernels.vectors.simd import lane_count, offset


@jit
def backward_task(  # noqa: C901 (three gradients from one pass over the strip)
    job: Any,
    task: int,
    scratch: Any,
    image: Any,
    result: Any,
    taps: Any,
    slopes: Any,
    matrix: Any,
    spread_matrix: Any,
    gradient: Any,
    matrix_gradient: Any,
    sigma_gradient: Any,
) -> None:
    """One band of rows of one group of one image: from ∂L/∂y the gradients in the image, the coefficients and σ.

    With z = jet(∂L/∂y) and the signs of the adjoint in `matrix`:  ∂L/∂x = mix(z),  ∂L/∂α = ⟨z, x⟩ and, with
    w = spread(x) = αx,  ∂L/∂σ = ⟨∂z/∂σ, w⟩.  Only x is needed from the forward pass.
    """
    channels, outputs, height, width = job[JOB_IN], job[JOB_OUT], job[JOB_HEIGHT], job[JOB_WIDTH]
    orders, strip, scales = job[JOB_ORDERS], job[JOB_STRIP], job[JOB_SCALES]
    basis = orders * (orders + 1) // 2
    begin, end, image_index, scale = task_place(job, task)
    radius = job[JOB_LENGTH + scale]
    bank = bank_of_scale(taps, slopes, scale, radius, orders, job[JOB_TAP_STRIDE])
    wants_image, wants_matrix = job[JOB_RESULT] != 0, job[JOB_MATRIX_GRADIENT] != 0
    wants_sigma = job[JOB_SIGMA_GRADIENT] != 0

    lanes = lane_count(image)
    wide = min(round_up(width, lanes), job[JOB_BLOCK])
    pitch = row_room(wide, radius, lanes)
    apart = strip * wide + lanes
    jet_count, image_count = round_up(basis * outputs, 4), round_up(channels, 4)
    copied = scratch
    down = offset(copied, (ROWS_AT_ONCE + 2 * radius) * pitch)
    jets = offset(down, orders * ROWS_AT_ONCE * pitch * (4 if wants_sigma else 1))
    pixels = offset(jets, jet_count * apart)
    mixed = offset(pixels, image_count * apart)
    spread = offset(mixed, image_count * apart)
    input_scale = scale if job[JOB_INPUT_SCALES] > 1 else 0
    image_planes = (image_index * job[JOB_INPUT_SCALES] + input_scale) * channels
    result_planes = (image_index * scales + scale) * channels
    gradient_planes = (image_index * scales + scale) * outputs
    totals = offset(matrix_gradient, task * jet_count * image_count if wants_matrix else 0)
    sigma_total = 0.0

    for left in range(0, width, job[JOB_BLOCK]):
        block = block_from(height, width, left, job[JOB_BLOCK], radius, lanes)
        fill(scratch, 0, (ROWS_AT_ONCE * (1 + orders * (2 if wants_sigma else 1)) + 2 * radius) * pitch)
        for top in range(begin, end, strip):
            count = min(strip, end - top)
            pixel_count = whole_vectors(block, count, lanes)
            if wants_matrix or wants_sigma:
                for channel in range(channels):
                    plane, ahead = (image_planes + channel) * height * width, height * width
                    read_rows(image, plane, ahead, block, top, count, offset(pixels, channel * apart))
            if wants_sigma:
                mix(spread_matrix, jet_count, channels, pixels, apart, pixel_count, spread, apart)
            for output in range(outputs):
                plane, jet = (gradient_planes + output) * height * width, offset(jets, output * apart)
                ahead = height * width if output < outputs - 1 else count * width - output * height * width
                for y in range(0, count, ROWS_AT_ONCE):
                    rows, here = min(ROWS_AT_ONCE, count - y), offset(jet, y * block.stride)
                    if wants_sigma:
                        sigma_total += jet_rows_and_slope(
                            gradient, plane, ahead, block, top + y, rows, bank, copied, down, here, outputs * apart,
                            offset(spread, output * apart + y * block.stride),
                        )  # fmt: skip
                    else:
                        jet_rows(
                            gradient, plane, ahead, block, top + y, rows, bank, copied, down, here, outputs * apart
                        )
            if wants_image:
                mix(matrix, image_count, basis * outputs, jets, apart, pixel_count, mixed, apart)
                for channel in range(channels):
                    at = ((result_planes + channel) * height + top) * width + left
                    write_rows(offset(mixed, channel * apart), block, count, result, at, taps, -1, -1, False)
            if wants_matrix:
                gram(jets, jet_count, apart, pixels, image_count, apart, pixel_count, totals)
    if wants_sigma:
        sigma_gradient[task] = sigma_total
