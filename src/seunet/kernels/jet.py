"""The CPU path: the fused loops of `loops/jet.py` as a function of image, coefficients and filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from seunet.kernels import jobs as tasks
from seunet.kernels import threads as team
from seunet.kernels.jobs import VECTOR_BYTES, round_up, scratch_address
from seunet.maths.gaussian import jet_orders, order_of

_CACHE_BYTES = 512 * 1024
"""What the buffers of one strip may take: half of a common second-level cache."""

BLOCK = 256
"""Columns walked at a time.  Wide blocks read and write memory in long runs."""

_TASKS = 16
"""How finely a call is cut at least, for an even load.  Fixed: results must not depend on the number of threads."""


@dataclass(frozen=True)
class Filters:
    """The 1-D filters of one layer: half of each (t ≥ 0), the other half by parity.

    taps [scales, order + 1, reach + 1], None where pixels are mixed as they are; slopes, the same for ∂taps/∂σ, only
    where σ is trained.
    """

    taps: Tensor | None
    radii: tuple[int, ...]
    slopes: Tensor | None = None

    @property
    def order(self) -> int:
        return 0 if self.taps is None else self.taps.shape[1] - 1

    @property
    def basis(self) -> int:
        return (self.order + 1) * (self.order + 2) // 2


def rows_room(wide: int, filters: Filters, lanes: int, buffers: int) -> int:
    """Floats for rows with margins: those that had to be copied, and `buffers` of those that are filtered."""
    reach = max(filters.radii)
    rows = tasks.ROWS_AT_ONCE * (1 + buffers) + 2 * reach
    return rows * (wide + 2 * round_up(reach, lanes)) + 2 * lanes


def strip_rows(height: int, row_floats: int, dtype: torch.dtype) -> int:
    """As many rows as the cache holds, in whole runs of those filtered together; the whole image where it fits."""
    runs = _CACHE_BYTES // (row_floats * dtype.itemsize) // tasks.ROWS_AT_ONCE
    return min(height, max(1, runs) * tasks.ROWS_AT_ONCE)


def band_count(batch: int, scales: int, height: int) -> int:
    """Bands of at least 8 rows that each image and scale is cut into, so that there are `_TASKS` tasks or more."""
    return max(1, min(height // 8, -(-_TASKS // max(1, batch * scales))))


def run_job(job: dict[int, int], radii: Sequence[int], floats: int, dtype: torch.dtype, backward: bool) -> None:
    if job[tasks.JOB_TASKS] == 0:
        return
    workers = min(team.team_size(), job[tasks.JOB_TASKS])
    floats = round_up(floats, VECTOR_BYTES // dtype.itemsize)
    scratch = scratch_address(workers * floats * dtype.itemsize)
    job |= {tasks.JOB_SCRATCH: scratch, tasks.JOB_SCRATCH_FLOATS: floats}
    team.run_job(team.worker("jet", dtype, backward), job, tasks.JOB_LENGTH, workers, radii)


def common_job(image: Tensor, filters: Filters, outputs: int, strip: int, bands: int) -> dict[int, int]:
    batch, input_scales, channels, height, width = image.shape
    return {
        tasks.JOB_TASKS: batch * len(filters.radii) * bands if height * width else 0,
        tasks.JOB_BANDS: bands,
        tasks.JOB_BATCH: batch,
        tasks.JOB_SCALES: len(filters.radii),
        tasks.JOB_INPUT_SCALES: input_scales,
        tasks.JOB_IN: channels,
        tasks.JOB_OUT: outputs,
        tasks.JOB_HEIGHT: height,
        tasks.JOB_WIDTH: width,
        tasks.JOB_FIRST_ROW: 0,
        tasks.JOB_ROWS: height,
        tasks.JOB_ORDERS: filters.order + 1,
        tasks.JOB_BLOCK: BLOCK,
        tasks.JOB_STRIP: strip,
        tasks.JOB_TAPS: 0 if filters.taps is None else filters.taps.data_ptr(),
        tasks.JOB_TAP_STRIDE: 0 if filters.taps is None else filters.taps.shape[2],
        tasks.JOB_IMAGE: image.data_ptr(),
    }


class Mixing(NamedTuple):
    """How channels are mixed: coefficients as `packed`, and what follows, `affine` [2, scales, C_out] and a ReLU."""

    matrix: Tensor
    outputs: int
    affine: Tensor | None = None
    relu: bool = False


def convolve(
    image: Tensor,
    filters: Filters,
    mixing: Mixing,
    rows: slice | None = None,
    beside: Tensor | None = None,
    then: Mixing | None = None,
) -> Tensor:
    """[B, scales or 1, C_in, H, W] → [B, scales, C_out, H, W]; no gradient.

    With `rows`, these rows of the result alone: [B, scales, C_out, rows, W].  With `beside`, the channels of `image`
    are followed by those of this map.  `then` mixes the result again, which has an affine: pixel by pixel, no ReLU.
    """
    batch, _, channels, height, width = image.shape
    image, beside = in_whole_rows(image), None if beside is None else in_whole_rows(beside)
    beside_from, channels = channels, channels + (0 if beside is None else beside.shape[2])
    first, last, _ = (rows or slice(None)).indices(height)
    scales, outputs, dtype, height = len(filters.radii), mixing.outputs, image.dtype, max(0, last - first)
    written = outputs if then is None else then.outputs
    result = image.new_empty(batch, scales, written, height, width)
    orders, lanes = filters.order + 1, VECTOR_BYTES // dtype.itemsize
    wide = min(BLOCK, round_up(width, lanes))
    bands = band_count(batch, scales, height)
    rows_of_strip = max(filters.basis * channels, round_up(written, 4)) + round_up(outputs, 4)
    strip = strip_rows(-(-height // bands), wide * rows_of_strip, dtype)
    floats = rows_room(wide, filters, lanes, orders) + rows_of_strip * (strip * wide + lanes)
    job = common_job(image, filters, outputs, strip, bands) | {
        tasks.JOB_TASKS: batch * scales * bands if height * width else 0,
        tasks.JOB_IN: channels,
        tasks.JOB_BESIDE_FROM: beside_from,
        tasks.JOB_FIRST_ROW: first,
        tasks.JOB_ROWS: height,
        tasks.JOB_RESULT: result.data_ptr(),
        tasks.JOB_MATRIX: mixing.matrix.data_ptr(),
        tasks.JOB_AFFINE: 0 if mixing.affine is None else mixing.affine.data_ptr(),
        tasks.JOB_RELU: int(mixing.relu),
    }
    if then is not None and then.affine is not None:
        places = tasks.JOB_THEN, tasks.JOB_THEN_OUT, tasks.JOB_THEN_AFFINE
        job |= dict(zip(places, (then.matrix.data_ptr(), then.outputs, then.affine.data_ptr()), strict=True))
    job |= dict(zip((tasks.JOB_IMAGE_STEP, tasks.JOB_SCALE_STEP, tasks.JOB_CHANNEL_STEP), _steps(image), strict=True))
    if beside is not None:
        places = tasks.JOB_BESIDE_IMAGE_STEP, tasks.JOB_BESIDE_SCALE_STEP, tasks.JOB_BESIDE_CHANNEL_STEP
        job |= {tasks.JOB_BESIDE: beside.data_ptr(), **dict(zip(places, _steps(beside), strict=True))}
    run_job(job, filters.radii, floats, dtype, backward=False)
    return result


def in_whole_rows(maps: Tensor) -> Tensor:
    """Maps [B, scales, C, H, W] whose rows follow each other within a plane, wherever the planes lie; copied if not."""
    follow = maps.stride(4) == 1 and maps.stride(3) == maps.shape[4]
    return maps if follow else maps.contiguous()


def _steps(maps: Tensor) -> tuple[int, int, int]:
    """Floats from an image to the next, from a scale to the next (none where all see the same) and from a channel."""
    return maps.stride(0), maps.stride(1) if maps.shape[1] > 1 else 0, maps.stride(2)


def packed(coefficients: Tensor) -> Tensor:
    """Coefficients [basis, C_in, C_out] as the loops of `convolve` read them."""
    return packed_matrix(as_filtered(coefficients).flatten(0, 1))


def pixel_mixing(weight: Tensor, bias: Tensor, scales: int, dtype: torch.dtype) -> Mixing:
    """A 1×1 convolution, weight [C_out, C_in] and bias [C_out], the same at all scales."""
    affine = torch.stack([torch.ones_like(bias), bias])[:, None].expand(2, scales, len(weight))
    return Mixing(packed(weight.t()[None].to(dtype)), len(weight), affine.to(dtype).contiguous())


def packed_matrix(matrix: Tensor) -> Tensor:
    """The matrix with columns of zeros up to a multiple of four, four columns after the other: as `mix` reads it."""
    padded = torch.nn.functional.pad(matrix, (0, -matrix.shape[1] % 4))
    return padded.view(len(padded), -1, 4).transpose(0, 1).contiguous()


def as_filtered(jet: Tensor) -> Tensor:
    """A jet [basis, …] in the order of the loops, by vertical derivatives; its own inverse."""
    return jet if len(jet) == 1 else torch.cat([jet[k : k + 1] for k in _by_columns(len(jet))])


@cache
def _by_columns(basis: int) -> list[int]:
    """Where each derivative of the loops stands in the order of the package."""
    named = jet_orders(order_of(basis))
    return [named.index((j, i)) for i, j in named]
