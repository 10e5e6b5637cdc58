"""The CPU path: the fused loops of `jet_loops.py` as one differentiable function of image, coefficients and σ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seunet.kernels import jobs as tasks
from seunet.kernels import threads as team
from seunet.kernels.derivatives import once_differentiable
from seunet.kernels.jobs import VECTOR_BYTES, round_up, scratch_address
from seunet.maths.gaussian import jet_orders, order_of

_CACHE_BYTES = 512 * 1024
"""What the buffers of one strip may take: half of a common second-level cache."""

_BLOCK = 256
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


def _rows_room(wide: int, filters: Filters, lanes: int, buffers: int) -> int:
    """Floats for rows with margins: those that had to be copied, and `buffers` of those that are filtered."""
    reach = max(filters.radii)
    rows = tasks.ROWS_AT_ONCE * (1 + buffers) + 2 * reach
    return rows * (wide + 2 * round_up(reach, lanes)) + 2 * lanes


def _strip_rows(height: int, row_floats: int, dtype: torch.dtype) -> int:
    """As many rows as the cache holds, in whole runs of those filtered together; the whole image where it fits."""
    runs = _CACHE_BYTES // (row_floats * dtype.itemsize) // tasks.ROWS_AT_ONCE
    return min(height, max(1, runs) * tasks.ROWS_AT_ONCE)


def _bands(batch: int, scales: int, height: int) -> int:
    """Bands of at least 8 rows that each image and scale is cut into, so that there are `_TASKS` tasks or more."""
    return max(1, min(height // 8, -(-_TASKS // max(1, batch * scales))))


def _run(job: dict[int, int], radii: Sequence[int], floats: int, dtype: torch.dtype, backward: bool) -> None:
    if job[tasks.JOB_TASKS] == 0:
        return
    workers = min(team.team_size(), job[tasks.JOB_TASKS])
    floats = round_up(floats, VECTOR_BYTES // dtype.itemsize)
    scratch = scratch_address(workers * floats * dtype.itemsize)
    job |= {tasks.JOB_SCRATCH: scratch, tasks.JOB_SCRATCH_FLOATS: floats}
    team.run_job(team.worker("jet_loops", dtype, backward), job, tasks.JOB_LENGTH, workers, radii)


def _common_job(image: Tensor, filters: Filters, outputs: int, strip: int, bands: int) -> dict[int, int]:
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
        tasks.JOB_BLOCK: _BLOCK,
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
    wide = min(_BLOCK, round_up(width, lanes))
    bands = _bands(batch, scales, height)
    rows_of_strip = max(filters.basis * channels, round_up(written, 4)) + round_up(outputs, 4)
    strip = _strip_rows(-(-height // bands), wide * rows_of_strip, dtype)
    floats = _rows_room(wide, filters, lanes, orders) + rows_of_strip * (strip * wide + lanes)
    job = _common_job(image, filters, outputs, strip, bands) | {
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
    _run(job, filters.radii, floats, dtype, backward=False)
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
    return _packed_matrix(_as_filtered(coefficients).flatten(0, 1))


def pixel_mixing(weight: Tensor, bias: Tensor, scales: int, dtype: torch.dtype) -> Mixing:
    """A 1×1 convolution, weight [C_out, C_in] and bias [C_out], the same at all scales."""
    affine = torch.stack([torch.ones_like(bias), bias])[:, None].expand(2, scales, len(weight))
    return Mixing(packed(weight.t()[None].to(dtype)), len(weight), affine.to(dtype).contiguous())


def _packed_matrix(matrix: Tensor) -> Tensor:
    """The matrix with columns of zeros up to a multiple of four, four columns after the other: as `mix` reads it."""
    padded = torch.nn.functional.pad(matrix, (0, -matrix.shape[1] % 4))
    return padded.view(len(padded), -1, 4).transpose(0, 1).contiguous()


def _as_filtered(jet: Tensor) -> Tensor:
    """A jet [basis, …] in the order of the loops, by vertical derivatives; its own inverse."""
    return jet if len(jet) == 1 else torch.cat([jet[k : k + 1] for k in _by_columns(len(jet))])


@cache
def _by_columns(basis: int) -> list[int]:
    """Where each derivative of the loops stands in the order of the package."""
    named = jet_orders(order_of(basis))
    return [named.index((j, i)) for i, j in named]


def _signs(filters: Filters, like: Tensor) -> Tensor:
    """(−1)^(i+j) over the jet: the adjoint of an odd derivative is its negative."""
    signs = [(-1.0) ** (i + j) for i, j in jet_orders(filters.order)]
    return torch.tensor(signs, dtype=like.dtype, device=like.device).view(-1, 1, 1)


class Gradients(NamedTuple):
    """∂L/∂image, ∂L/∂coefficients and ∂L/∂σ; None where it was not asked for."""

    image: Tensor | None
    coefficients: Tensor | None
    sigma: Tensor | None


def gradients(
    image: Tensor, filters: Filters, coefficients: Tensor, gradient: Tensor, wants: tuple[bool, bool, bool]
) -> Gradients:
    """The three gradients from ∂L/∂y [B, scales, C_out, H, W], each only where `wants` it."""
    wants_image, wants_coefficients, wants_sigma = wants
    batch, input_scales, channels, height, width = image.shape
    scales, outputs, dtype, basis = len(filters.radii), coefficients.shape[2], image.dtype, filters.basis
    orders, lanes = filters.order + 1, VECTOR_BYTES // dtype.itemsize
    wide = min(_BLOCK, round_up(width, lanes))
    jet_rows, image_rows = round_up(basis * outputs, 4), round_up(channels, 4)
    # Parts are summed in a fixed order afterwards: the result does not depend on the number of threads.
    image_part = image.new_empty(batch, scales, channels, height, width) if wants_image else None
    bands = _bands(batch, scales, height)
    matrix_part = image.new_zeros(batch * scales * bands, jet_rows, image_rows) if wants_coefficients else None
    sigma_part = image.new_zeros(scales, batch * bands) if wants_sigma else None
    signed = _as_filtered(coefficients * _signs(filters, coefficients))
    matrix = _packed_matrix(signed.transpose(1, 2).reshape(basis * outputs, channels))
    spread = _packed_matrix(signed.transpose(0, 1).reshape(channels, basis * outputs))
    rows_of_strip = (2 if wants_sigma else 1) * jet_rows + 2 * image_rows
    strip = _strip_rows(-(-height // bands), wide * rows_of_strip, dtype)
    floats = _rows_room(wide, filters, lanes, 4 * orders if wants_sigma else orders)
    floats += rows_of_strip * (strip * wide + lanes)
    job = _common_job(image, filters, outputs, strip, bands) | {
        tasks.JOB_SLOPES: 0 if filters.slopes is None else filters.slopes.data_ptr(),
        tasks.JOB_RESULT: 0 if image_part is None else image_part.data_ptr(),
        tasks.JOB_MATRIX: matrix.data_ptr(),
        tasks.JOB_SPREAD: spread.data_ptr(),
        tasks.JOB_GRADIENT: gradient.data_ptr(),
        tasks.JOB_MATRIX_GRADIENT: 0 if matrix_part is None else matrix_part.data_ptr(),
        tasks.JOB_SIGMA_GRADIENT: 0 if sigma_part is None else sigma_part.data_ptr(),
    }
    _run(job, filters.radii, floats, dtype, backward=True)
    if image_part is not None and input_scales == 1 and scales > 1:
        image_part = image_part.sum(1, keepdim=True)
    summed = None
    if matrix_part is not None:
        summed = matrix_part.sum(0)[: basis * outputs, :channels].reshape(basis, outputs, channels)
        summed = _as_filtered(summed.transpose(1, 2)) * _signs(filters, coefficients)
    return Gradients(image_part, summed, None if sigma_part is None else sigma_part.sum(1).flip(0))


class FusedJetConvolution(torch.autograd.Function):
    """`convolve` with its gradients.  Only the image is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, coefficients: Tensor, sigma: Tensor, filters: Filters) -> Tensor:
        ctx.save_for_backward(image, coefficients)
        ctx.filters = filters
        return convolve(image, filters, Mixing(packed(coefficients), coefficients.shape[2]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        image, coefficients = ctx.saved_tensors
        return *gradients(image, ctx.filters, coefficients, gradient.contiguous(), ctx.needs_input_grad[:3]), None
