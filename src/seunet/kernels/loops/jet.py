"""The fused convolution: a strip of rows is filtered, mixed and written while it is in the cache of one thread.

For each channel the new rows are filtered horizontally and vertically into the jet of the strip; one small matrix
product mixes the jets of all channels into the outputs.  The jets, three times larger than the image for first
derivatives, never reach main memory.

What a task needs is handed over as one vector of integers (`jet.py` writes it, `JOB_*` are the places in it, the radii
follow), so that a C function of one argument can run it on any team of threads.
"""

from __future__ import annotations

from typing import Any

from numba import types

from seunet.kernels.compiling.functions import jit, worker_function
from seunet.kernels.jobs import (
    JOB_AFFINE,
    JOB_BESIDE,
    JOB_BESIDE_CHANNEL_STEP,
    JOB_BESIDE_FROM,
    JOB_BESIDE_IMAGE_STEP,
    JOB_BESIDE_SCALE_STEP,
    JOB_BLOCK,
    JOB_CHANNEL_STEP,
    JOB_FIRST_ROW,
    JOB_GRADIENT,
    JOB_HEIGHT,
    JOB_IMAGE,
    JOB_IMAGE_STEP,
    JOB_IN,
    JOB_LENGTH,
    JOB_MATRIX,
    JOB_MATRIX_GRADIENT,
    JOB_NEXT_TASK,
    JOB_NEXT_WORKER,
    JOB_ORDERS,
    JOB_OUT,
    JOB_RELU,
    JOB_RESULT,
    JOB_ROWS,
    JOB_SCALE_STEP,
    JOB_SCALES,
    JOB_SCRATCH,
    JOB_SCRATCH_FLOATS,
    JOB_SIGMA_GRADIENT,
    JOB_SLOPES,
    JOB_SPREAD,
    JOB_STRIP,
    JOB_TAP_STRIDE,
    JOB_TAPS,
    JOB_TASKS,
    JOB_THEN,
    JOB_THEN_AFFINE,
    JOB_THEN_OUT,
    JOB_WIDTH,
    ROWS_AT_ONCE,
)
from seunet.kernels.loops.filters import mix
from seunet.kernels.loops.jet_gradients import backward_task
from seunet.kernels.loops.rows import (
    block_from,
    fill,
    finish_rows,
    read_rows,
    round_up,
    row_room,
    whole_vectors,
    write_rows,
)
from seunet.kernels.loops.strips import bank_of_scale, jet_rows, task_place
from seunet.kernels.vectors.simd import all_stored, fetch_add, float_pointer, lane_count, offset


@jit
def forward_task(
    job: Any, task: int, scratch: Any, image: Any, beside: Any, result: Any, taps: Any, matrix: Any, affine: Any,
    then_matrix: Any, then_affine: Any,
) -> None:  # fmt: skip
    """One band of rows of one group of one image: result = mix(jet(image)), or mix(image) where there are no taps.

    The channels from JOB_BESIDE_FROM on are those of the map `beside`.  With JOB_THEN the result, which has an
    affine, is mixed once more by another matrix while it is in the cache: what lies between is never written.
    """
    channels, outputs, height, width = job[JOB_IN], job[JOB_OUT], job[JOB_HEIGHT], job[JOB_WIDTH]
    orders, strip, scales = job[JOB_ORDERS], job[JOB_STRIP], job[JOB_SCALES]
    basis = orders * (orders + 1) // 2
    begin, end, image_index, scale = task_place(job, task)
    radius = job[JOB_LENGTH + scale]
    bank = bank_of_scale(taps, taps, scale, radius, orders, job[JOB_TAP_STRIDE])

    lanes = lane_count(image)
    wide = min(round_up(width, lanes), job[JOB_BLOCK])
    pitch = row_room(wide, radius, lanes)
    # An odd number of cache lines between the rows of a matrix keeps them out of each other's cache sets.
    apart = strip * wide + lanes
    copied = scratch
    down = offset(copied, (ROWS_AT_ONCE + 2 * radius) * pitch)
    jets = offset(down, orders * ROWS_AT_ONCE * pitch)
    # What is mixed twice comes to lie where its jet was.
    written = job[JOB_OUT] if job[JOB_THEN] == 0 else job[JOB_THEN_OUT]
    mixed = offset(jets, max(basis * channels, round_up(written, 4)) * apart)
    first_plane = image_index * job[JOB_IMAGE_STEP] + scale * job[JOB_SCALE_STEP]
    first_beside = image_index * job[JOB_BESIDE_IMAGE_STEP] + scale * job[JOB_BESIDE_SCALE_STEP]
    output_planes = (image_index * scales + scale) * written

    for left in range(0, width, job[JOB_BLOCK]):
        block = block_from(height, width, left, job[JOB_BLOCK], radius, lanes)
        fill(scratch, 0, (ROWS_AT_ONCE * (1 + orders) + 2 * radius) * pitch)
        for top in range(begin, end, strip):
            count = min(strip, end - top)
            for channel in range(channels):
                source, plane, ahead = image, first_plane + channel * job[JOB_CHANNEL_STEP], job[JOB_CHANNEL_STEP]
                if channel >= job[JOB_BESIDE_FROM]:
                    source, ahead = beside, job[JOB_BESIDE_CHANNEL_STEP]
                    plane = first_beside + (channel - job[JOB_BESIDE_FROM]) * ahead
                elif channel == channels - 1:
                    ahead = first_plane - plane + count * width
                jet = offset(jets, channel * apart)
                if job[JOB_TAPS] == 0:
                    read_rows(source, plane, ahead, block, top, count, jet)
                else:
                    for y in range(0, count, ROWS_AT_ONCE):
                        jet_rows(
                            source, plane, ahead, block, top + y, min(ROWS_AT_ONCE, count - y), bank, copied, down,
                            offset(jet, y * block.stride), channels * apart,
                        )  # fmt: skip
            pixel_count = whole_vectors(block, count, lanes)
            mix(matrix, round_up(outputs, 4), basis * channels, jets, apart, pixel_count, mixed, apart)
            found, numbers, relu = mixed, affine, job[JOB_RELU] != 0
            if job[JOB_THEN] != 0:
                scale_at, shift_at = scale * outputs, (scales + scale) * outputs
                finish_rows(mixed, outputs, apart, pixel_count, affine, scale_at, shift_at, relu)
                mix(then_matrix, round_up(written, 4), outputs, mixed, apart, pixel_count, jets, apart)
                found, numbers, relu = jets, then_affine, False
            for output in range(written):
                at = ((output_planes + output) * job[JOB_ROWS] + top - job[JOB_FIRST_ROW]) * width + left
                scale_at = scale * written + output if job[JOB_AFFINE] != 0 else -1
                shift_at = (scales + scale) * written + output
                write_rows(offset(found, output * apart), block, count, result, at, numbers, scale_at, shift_at, relu)


def make_worker(dtype: types.Float, backward: bool) -> Any:
    """A C function void(job): take the next task until none is left."""
    dtype_bytes = dtype.bitwidth // 8

    @worker_function
    def worker(job: Any) -> None:
        mine = fetch_add(offset(job, JOB_NEXT_WORKER), 1)
        scratch = float_pointer(job[JOB_SCRATCH] + mine * job[JOB_SCRATCH_FLOATS] * dtype_bytes, dtype)
        image, result = float_pointer(job[JOB_IMAGE], dtype), float_pointer(job[JOB_RESULT], dtype)
        taps, matrix = float_pointer(job[JOB_TAPS], dtype), float_pointer(job[JOB_MATRIX], dtype)
        while True:
            task = fetch_add(offset(job, JOB_NEXT_TASK), 1)
            if task >= job[JOB_TASKS]:
                break
            if backward:
                backward_task(
                    job, task, scratch, image, result, taps, float_pointer(job[JOB_SLOPES], dtype), matrix,
                    float_pointer(job[JOB_SPREAD], dtype), float_pointer(job[JOB_GRADIENT], dtype),
                    float_pointer(job[JOB_MATRIX_GRADIENT], dtype), float_pointer(job[JOB_SIGMA_GRADIENT], dtype),
                )  # fmt: skip
            else:
                affine, beside = float_pointer(job[JOB_AFFINE], dtype), float_pointer(job[JOB_BESIDE], dtype)
                forward_task(
                    job, task, scratch, image, beside, result, taps, matrix, affine,
                    float_pointer(job[JOB_THEN], dtype), float_pointer(job[JOB_THEN_AFFINE], dtype),
                )  # fmt: skip
        all_stored()

    return worker
