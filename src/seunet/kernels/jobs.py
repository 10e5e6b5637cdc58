"""What the compiled loops are told and given: places in the vector of integers of a job, and room for buffers.

Nothing here needs Numba, nor does what runs a job: the loops may have been compiled before (`compiling/workers.py`).
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

VECTOR_BYTES: Final = 64

ROWS_AT_ONCE: Final = 8
"""Rows of a channel that are filtered together: few enough for the first-level cache, enough to share what they see."""

(
    JOB_NEXT_TASK,
    JOB_NEXT_WORKER,
    JOB_TASKS,
    JOB_BANDS,
    JOB_BATCH,
    JOB_SCALES,
    JOB_INPUT_SCALES,
    JOB_IN,
    JOB_OUT,
    JOB_HEIGHT,
    JOB_WIDTH,
    JOB_FIRST_ROW,
    JOB_ROWS,
    JOB_ORDERS,
    JOB_BLOCK,
    JOB_STRIP,
    JOB_TAPS,
    JOB_SLOPES,
    JOB_TAP_STRIDE,
    JOB_SCRATCH,
    JOB_SCRATCH_FLOATS,
    JOB_IMAGE,
    JOB_IMAGE_STEP,
    JOB_SCALE_STEP,
    JOB_CHANNEL_STEP,
    JOB_BESIDE,
    JOB_BESIDE_FROM,
    JOB_BESIDE_IMAGE_STEP,
    JOB_BESIDE_SCALE_STEP,
    JOB_BESIDE_CHANNEL_STEP,
    JOB_RESULT,
    JOB_MATRIX,
    JOB_AFFINE,
    JOB_RELU,
    JOB_GRADIENT,
    JOB_MATRIX_GRADIENT,
    JOB_SIGMA_GRADIENT,
    JOB_SPREAD,
    JOB_THEN,
    JOB_THEN_OUT,
    JOB_THEN_AFFINE,
    JOB_LENGTH,
) = range(42)

(
    PLANES_NEXT_TASK,
    PLANES_NEXT_WORKER,
    PLANES_COUNT,
    PLANES_KIND,
    PLANES_SMALL,
    PLANES_LARGE,
    PLANES_RESULT,
    PLANES_SMALL_HEIGHT,
    PLANES_SMALL_WIDTH,
    PLANES_LARGE_HEIGHT,
    PLANES_LARGE_WIDTH,
    PLANES_GROUP,
    PLANES_LARGE_GROUP,
    PLANES_SCRATCH,
    PLANES_SCRATCH_FLOATS,
    PLANES_LENGTH,
) = range(16)

POOL, UPSAMPLE = range(2)

(
    CHANNELS_NEXT_TASK,
    CHANNELS_COUNT,
    CHANNELS_BATCH,
    CHANNELS_PIXELS,
    CHANNELS_BACKWARD,
    CHANNELS_MAPS,
    CHANNELS_RESULT,
    CHANNELS_GRADIENT,
    CHANNELS_TARGET,
    CHANNELS_TABLE,
    CHANNELS_LENGTH,
) = range(11)

(ROW_WEIGHT, ROW_BIAS, ROW_EPSILON, ROW_MEAN, ROW_VARIANCE, ROW_WEIGHT_GRADIENT, ROW_BIAS_GRADIENT, ROWS) = range(8)

_scratch = threading.local()


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not below `number`."""
    return -(-number // multiple) * multiple


def scratch_address(size_bytes: int) -> int:
    """The address of at least `size_bytes` that this Python thread may use until its next call; a whole vector's."""
    kept: np.ndarray[Any, Any] | None = getattr(_scratch, "buffer", None)
    if kept is None or kept.size < size_bytes + VECTOR_BYTES:
        kept = _scratch.buffer = np.zeros(size_bytes + VECTOR_BYTES, dtype=np.uint8)
    return round_up(int(kept.ctypes.data), VECTOR_BYTES)
