"""Channels normalised over the batch, followed by ReLU, and the gradient of both: one channel at a time, in the cache.

torch reads and writes the whole map once for the statistics, once for the norm and once for the ReLU, and again for
each of their gradients.  A channel of a training batch fits the cache of a core, so here it comes from memory once.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types

from seunet.kernels.compiling.functions import jit, worker_function
from seunet.kernels.jobs import (
    CHANNELS_BACKWARD,
    CHANNELS_BATCH,
    CHANNELS_COUNT,
    CHANNELS_GRADIENT,
    CHANNELS_MAPS,
    CHANNELS_NEXT_TASK,
    CHANNELS_PIXELS,
    CHANNELS_RESULT,
    CHANNELS_TABLE,
    CHANNELS_TARGET,
    ROW_BIAS,
    ROW_BIAS_GRADIENT,
    ROW_EPSILON,
    ROW_MEAN,
    ROW_VARIANCE,
    ROW_WEIGHT,
    ROW_WEIGHT_GRADIENT,
)
from seunet.kernels.loops.filters import vector_of
from seunet.kernels.loops.rows import store_line
from seunet.kernels.vectors.arithmetic import add, fused_multiply_add, maximum, multiply, subtract, where_positive
from seunet.kernels.vectors.simd import (
    all_stored,
    fetch_add,
    float_pointer,
    floats_to_line,
    lane_count,
    lane_sum,
    load,
    offset,
)

"""Rows of the table [ROWS, channels]: the numbers per channel that are given, then those that are found."""


@jit
def channel_statistics(maps: Any, first: int, apart: int, batch: int, pixels: int) -> tuple[float, float]:
    """Mean and variance of a channel: the sum, then the squares around the mean (one pass would cancel digits)."""
    lanes = lane_count(maps)
    whole, count = pixels // lanes * lanes, batch * pixels
    total = 0.0
    for image in range(batch):
        at = first + image * apart
        sums = vector_of(maps, 0.0)
        for n in range(0, whole, lanes):
            sums = add(sums, load(maps, at + n))
        total += lane_sum(sums)
        for n in range(whole, pixels):
            total += maps[at + n]
    mean = total / count
    squares = 0.0
    middle = vector_of(maps, mean)
    for image in range(batch):
        at = first + image * apart
        sums = vector_of(maps, 0.0)
        for n in range(0, whole, lanes):
            difference = subtract(load(maps, at + n), middle)
            sums = fused_multiply_add(difference, difference, sums)
        squares += lane_sum(sums)
        for n in range(whole, pixels):
            squares += (maps[at + n] - mean) ** 2
    return mean, squares / count


@jit
def normalise_channel(
    maps: Any, first: int, apart: int, batch: int, pixels: int, scale: float, shift: float, result: Any
) -> None:
    """result = max(scale · x + shift, 0)"""
    lanes = lane_count(maps)
    whole = pixels // lanes * lanes
    a, b, zero = vector_of(maps, scale), vector_of(maps, shift), vector_of(maps, 0.0)
    for image in range(batch):
        at = first + image * apart
        past = floats_to_line(result, at) == 0
        for n in range(0, whole, lanes):
            store_line(result, at + n, maximum(fused_multiply_add(a, load(maps, at + n), b), zero), past)
        for n in range(whole, pixels):
            result[at + n] = max(scale * maps[at + n] + shift, 0.0)


@jit
def open_gradient(maps: Any, gradient: Any, at: int, scale: Any, shift: Any) -> Any:
    """The gradient behind the ReLU, which is open where the norm's result, computed again, is positive."""
    value = fused_multiply_add(scale, load(maps, at), shift)
    return where_positive(value, load(gradient, at), subtract(shift, shift))


@jit
def gradient_sums(
    maps: Any, gradient: Any, first: int, apart: int, batch: int, pixels: int, mean: float, scale: float, shift: float
) -> tuple[float, float]:
    """Σ g and Σ g·(x − mean) of the gradient g behind the ReLU."""
    lanes = lane_count(maps)
    pairs, whole = pixels // (2 * lanes) * (2 * lanes), pixels // lanes * lanes
    total = weighted = 0.0
    middle, a, b = vector_of(maps, mean), vector_of(maps, scale), vector_of(maps, shift)
    for image in range(batch):
        at = first + image * apart
        sums = more_sums = products = more_products = vector_of(maps, 0.0)
        for n in range(at, at + pairs, 2 * lanes):
            g, h = open_gradient(maps, gradient, n, a, b), open_gradient(maps, gradient, n + lanes, a, b)
            sums, more_sums = add(sums, g), add(more_sums, h)
            products = fused_multiply_add(g, subtract(load(maps, n), middle), products)
            more_products = fused_multiply_add(h, subtract(load(maps, n + lanes), middle), more_products)
        for n in range(at + pairs, at + whole, lanes):
            g = open_gradient(maps, gradient, n, a, b)
            sums, products = add(sums, g), fused_multiply_add(g, subtract(load(maps, n), middle), products)
        total += lane_sum(add(sums, more_sums))
        weighted += lane_sum(add(products, more_products))
        for n in range(at + whole, at + pixels):
            if scale * maps[n] + shift > 0:
                total += gradient[n]
                weighted += gradient[n] * (maps[n] - mean)
    return total, weighted


@jit
def channel_gradient(
    maps: Any, gradient: Any, target: Any, first: int, apart: int, batch: int, pixels: int, mean: float,
    scale: float, shift: float, constant: float, slope: float,
) -> None:  # fmt: skip
    """target = scale · (g − constant − slope · (x − mean))"""
    lanes = lane_count(maps)
    whole = pixels // lanes * lanes
    a, b, middle = vector_of(maps, scale), vector_of(maps, shift), vector_of(maps, mean)
    minus_constant, minus_slope = vector_of(maps, -constant), vector_of(maps, -slope)
    for image in range(batch):
        at = first + image * apart
        past = floats_to_line(target, at) == 0
        for n in range(at, at + whole, lanes):
            g = add(open_gradient(maps, gradient, n, a, b), minus_constant)
            inner = fused_multiply_add(minus_slope, subtract(load(maps, n), middle), g)
            store_line(target, n, multiply(a, inner), past)
        for n in range(at + whole, at + pixels):
            passed = gradient[n] if scale * maps[n] + shift > 0 else 0.0
            target[n] = scale * (passed - constant - slope * (maps[n] - mean))


def make_worker(dtype: types.Float) -> Any:
    """A C function void(job): take the next channel until none is left."""

    @worker_function
    def channel_worker(job: Any) -> None:
        channels, batch, pixels = job[CHANNELS_COUNT], job[CHANNELS_BATCH], job[CHANNELS_PIXELS]
        maps, result = float_pointer(job[CHANNELS_MAPS], dtype), float_pointer(job[CHANNELS_RESULT], dtype)
        gradient, target = float_pointer(job[CHANNELS_GRADIENT], dtype), float_pointer(job[CHANNELS_TARGET], dtype)
        table = float_pointer(job[CHANNELS_TABLE], types.float64)
        apart, count = channels * pixels, batch * pixels
        while True:
            channel = fetch_add(offset(job, CHANNELS_NEXT_TASK), 1)
            if channel >= channels:
                break
            numbers, first = offset(table, channel), channel * pixels
            if job[CHANNELS_BACKWARD] == 0:
                mean, variance = channel_statistics(maps, first, apart, batch, pixels)
                numbers[ROW_MEAN * channels], numbers[ROW_VARIANCE * channels] = mean, variance
            mean, variance = numbers[ROW_MEAN * channels], numbers[ROW_VARIANCE * channels]
            inverse = 1 / math.sqrt(variance + numbers[ROW_EPSILON * channels])
            scale = numbers[ROW_WEIGHT * channels] * inverse
            shift = numbers[ROW_BIAS * channels] - mean * scale
            if job[CHANNELS_BACKWARD] == 0:
                normalise_channel(maps, first, apart, batch, pixels, scale, shift, result)
            else:
                total, weighted = gradient_sums(maps, gradient, first, apart, batch, pixels, mean, scale, shift)
                numbers[ROW_WEIGHT_GRADIENT * channels] = weighted * inverse
                numbers[ROW_BIAS_GRADIENT * channels] = total
                channel_gradient(
                    maps, gradient, target, first, apart, batch, pixels, mean, scale, shift, total / count,
                    weighted * inverse * inverse / count,
                )  # fmt: skip
        all_stored()

    return channel_worker
