"""The gradients of the fused convolution in image, coefficients and σ; the two as one differentiable function."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from seunet.kernels import jobs as tasks
from seunet.kernels.derivatives import once_differentiable
from seunet.kernels.jet import (
    BLOCK,
    Filters,
    Mixing,
    as_filtered,
    band_count,
    common_job,
    convolve,
    packed,
    packed_matrix,
    rows_room,
    run_job,
    strip_rows,
)
from seunet.kernels.jobs import VECTOR_BYTES, round_up
from seunet.maths.gaussian import jet_orders


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
    wide = min(BLOCK, round_up(width, lanes))
    jet_rows, image_rows = round_up(basis * outputs, 4), round_up(channels, 4)
    # Parts are summed in a fixed order afterwards: the result does not depend on the number of threads.
    image_part = image.new_empty(batch, scales, channels, height, width) if wants_image else None
    bands = band_count(batch, scales, height)
    matrix_part = image.new_zeros(batch * scales * bands, jet_rows, image_rows) if wants_coefficients else None
    sigma_part = image.new_zeros(scales, batch * bands) if wants_sigma else None
    signed = as_filtered(coefficients * _signs(filters, coefficients))
    matrix = packed_matrix(signed.transpose(1, 2).reshape(basis * outputs, channels))
    spread = packed_matrix(signed.transpose(0, 1).reshape(channels, basis * outputs))
    rows_of_strip = (2 if wants_sigma else 1) * jet_rows + 2 * image_rows
    strip = strip_rows(-(-height // bands), wide * rows_of_strip, dtype)
    floats = rows_room(wide, filters, lanes, 4 * orders if wants_sigma else orders)
    floats += rows_of_strip * (strip * wide + lanes)
    job = common_job(image, filters, outputs, strip, bands) | {
        tasks.JOB_SLOPES: 0 if filters.slopes is None else filters.slopes.data_ptr(),
        tasks.JOB_RESULT: 0 if image_part is None else image_part.data_ptr(),
        tasks.JOB_MATRIX: matrix.data_ptr(),
        tasks.JOB_SPREAD: spread.data_ptr(),
        tasks.JOB_GRADIENT: gradient.data_ptr(),
        tasks.JOB_MATRIX_GRADIENT: 0 if matrix_part is None else matrix_part.data_ptr(),
        tasks.JOB_SIGMA_GRADIENT: 0 if sigma_part is None else sigma_part.data_ptr(),
    }
    run_job(job, filters.radii, floats, dtype, backward=True)
    if image_part is not None and input_scales == 1 and scales > 1:
        image_part = image_part.sum(1, keepdim=True)
    summed = None
    if matrix_part is not None:
        summed = matrix_part.sum(0)[: basis * outputs, :channels].reshape(basis, outputs, channels)
        summed = as_filtered(summed.transpose(1, 2)) * _signs(filters, coefficients)
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
