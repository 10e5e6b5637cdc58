"""One function for the layer, and the choice of how it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor

from seunet.errors import InputError, unknown_name
from seunet.kernels import reference
from seunet.kernels.derivatives import check_transforms
from seunet.kernels.kept import Kept
from seunet.maths.gaussian import half_taps, order_of, taps_and_slopes
from seunet.recording import is_recording

if TYPE_CHECKING:
    from seunet.kernels.jet import Mixing

BACKENDS: Final = ("reference", "torch", "numba")

_chosen: ContextVar[str | None] = ContextVar("kernel_backend", default=None)


@contextmanager
def kernel_backend(name: str) -> Iterator[None]:
    """Compute with `name` ("reference", "torch" or "numba") inside the block, in this thread.

    Without it, "numba" runs on the CPU and "torch" everywhere else.  What is compiled, traced or exported is always
    "torch": a graph holds torch's own operations alone.
    """
    if name not in BACKENDS:
        raise unknown_name("kernel backend", name, BACKENDS)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen_backend(image: Tensor, *others: Tensor) -> str:
    """Which backend `jet_convolution` uses for this image and these parameters."""
    if is_recording():
        return "torch"
    name = _chosen.get()
    if name == "numba" and image.device.type != "cpu":
        raise InputError(f"kernel backend 'numba' runs on the CPU; the image is on {image.device}: use 'torch'")
    name = name or ("numba" if image.device.type == "cpu" else "torch")
    if name == "numba":
        check_transforms(image, *others)
    return name


class Pointwise(NamedTuple):
    """A 1×1 convolution that all scales share: weight [C_out, C_in], bias [C_out]."""

    weight: Tensor
    bias: Tensor
    kept: Kept | None = None
    """Where what the loops need of it is kept between two calls; so in `jet_convolution`."""


def jet_convolution(
    image: Tensor,
    coefficients: Tensor,
    sigma: Tensor,
    radii: Sequence[int],
    discretisation: str = "sampled",
    affine: Tensor | None = None,
    relu: bool = False,
    rows: slice | None = None,
    beside: Tensor | None = None,
    then: Pointwise | None = None,
    kept: Kept | None = None,
) -> Tensor:
    r"""y_k = Σ_ij α_ij (G^ij(σ_k) ⋆ f_k), then optionally max(a_k·y_k + b_k, 0).

    Args:
        image: [B, scales, C_in, H, W], or [B, 1, C_in, H, W] to be seen at every scale (lifting).
        coefficients: α [basis, C_in, C_out], shared by the scales, the basis as in `maths.gaussian.jet_orders`.
        sigma: [scales].
        radii: the filters' radius at each scale.
        discretisation: see `maths.gaussian`.
        affine: a and b as [2, scales, C_out]: a norm with frozen statistics.
        relu: whether max(·, 0) follows.
        rows: the rows of the result that are wanted; all of them if None.
        beside: more channels, behind those of `image`: what two maps joined would give, without joining them.
        then: what follows `affine` and ReLU at once.

    Returns:
        [B, scales, C_out, H, W], or with fewer rows.
    """
    if then is not None and (affine is None or torch.is_grad_enabled()):
        found = jet_convolution(image, coefficients, sigma, radii, discretisation, affine, relu, rows, beside)
        return pointwise(found, then)
    backend = chosen_backend(image, coefficients, sigma)
    if backend == "numba":
        return _fused(image, coefficients, sigma, tuple(radii), discretisation, affine, relu, rows, beside, then, kept)
    image = _joined(image, beside)
    taps = half_taps(sigma, radii, order_of(len(coefficients)), discretisation)
    if backend == "reference":
        result = reference.jet_convolution(image, coefficients, taps)
    else:
        result = reference.separable_convolution(image, coefficients, taps)
    result = affine_relu(result if rows is None else result[..., rows, :], affine, relu)
    return result if then is None else pointwise(result, then)


def pointwise(features: Tensor, then: Pointwise) -> Tensor:
    """[B, scales, C_in, H, W] → [B, scales, C_out, H, W] by torch's operations."""
    # A batched matrix product: a 1×1 `conv2d` is several times slower on the CPU in this memory layout.
    pixels = features.flatten(0, 1).flatten(2)
    mixed = torch.baddbmm(then.bias[None, :, None], then.weight.expand(pixels.shape[0], -1, -1), pixels)
    return mixed.view(*features.shape[:2], -1, *features.shape[3:])


def batch_norm_relu(maps: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """max(w·(x − mean)/√(var + ε) + b, 0) of [B, C, H, W] and the mean and variance [C] of the batch."""
    from seunet.kernels.batch_norm import NormRelu

    return NormRelu.apply(maps, weight, bias, epsilon)  # type: ignore[no-any-return, no-untyped-call]


def runs_in_whole_vectors(features: Tensor) -> bool:
    """Whether the loops that need whole vectors (pooling, upsampling, batch norm) are for this map."""
    return chosen_backend(features) == "numba" and features.dtype in (torch.float32, torch.float64)


def _joined(image: Tensor, beside: Tensor | None) -> Tensor:
    return image if beside is None else torch.cat([image, beside], dim=2)


def mixed_pixels(features: Tensor, weight: Tensor, bias: Tensor, kept: Kept | None = None) -> Tensor:
    """A 1×1 convolution that all scales share, [B, γ, C_in, H, W] → [B, γ, C_out, H, W]; no gradient, on the CPU.

    A pixel has the same bits wherever it lies and however many there are: its sum is taken channel by channel.
    """
    from seunet.kernels import jet as fused

    scales, mixing = features.shape[1], _pixel_mixing(Pointwise(weight, bias, kept), features.shape[1], features.dtype)
    return fused.convolve(features, fused.Filters(None, (0,) * scales), mixing)


def _pixel_mixing(then: Pointwise, scales: int, dtype: torch.dtype) -> Mixing:
    from seunet.kernels import jet as fused

    return (then.kept or Kept()).made(fused.pixel_mixing, (then.weight, then.bias), scales, dtype)


@lru_cache(maxsize=1024)
def _frozen_taps(
    sigmas: tuple[float, ...], radii: tuple[int, ...], order: int, discretisation: str, dtype: torch.dtype
) -> Tensor:
    """The filters of σ that no longer change: a network that is only used computes them once."""
    sigma = torch.tensor(sigmas, dtype=torch.float64, device="cpu")
    return half_taps(sigma, radii, order, discretisation).to(dtype).contiguous()


def _fused(
    image: Tensor,
    coefficients: Tensor,
    sigma: Tensor,
    radii: tuple[int, ...],
    discretisation: str,
    affine: Tensor | None,
    relu: bool,
    rows: slice | None,
    beside: Tensor | None,
    then: Pointwise | None,
    kept: Kept | None,
) -> Tensor:
    from seunet.kernels import jet as fused  # Numba takes a second to import: only where it is used

    order = order_of(len(coefficients))
    # Half precision has no arithmetic of its own on most CPUs: computed in single precision.
    dtype = image.dtype if image.dtype in (torch.float32, torch.float64) else torch.float32
    weights = coefficients.to(dtype)
    given = (image, coefficients, sigma) if beside is None else (image, coefficients, sigma, beside)
    if not (torch.is_grad_enabled() and any(one.requires_grad for one in given)):
        taps = _frozen_taps(tuple(sigma.tolist()), radii, order, discretisation, dtype)
        folded = None if affine is None else affine.to(dtype).contiguous()
        more = None if beside is None else beside.to(dtype)
        matrix = (kept or Kept()).made(fused.packed, (weights,))
        mixing = fused.Mixing(matrix, weights.shape[2], folded, relu)
        after = None if then is None else _pixel_mixing(then, len(radii), dtype)
        return fused.convolve(image.to(dtype), fused.Filters(taps, radii), mixing, rows, more, after).to(image.dtype)

    from seunet.kernels.jet_gradients import FusedJetConvolution

    source = _joined(image, beside).to(dtype).contiguous()
    # The slopes are needed in the backward pass alone, but come with the taps.
    taps, slopes = taps_and_slopes(sigma, radii, order, discretisation)
    filters = fused.Filters(taps.to(dtype).contiguous(), radii, slopes.to(dtype).contiguous())
    result: Tensor = FusedJetConvolution.apply(source, weights, sigma, filters)  # type: ignore[no-untyped-call]
    return affine_relu(result if rows is None else result[..., rows, :], affine, relu).to(image.dtype)


def affine_relu(features: Tensor, affine: Tensor | None, relu: bool) -> Tensor:
    """max(a·y + b, 0) of [B, scales, C, H, W], (a, b) = `affine` [2, scales, C]; each step only where asked for."""
    if affine is not None:
        features = affine[0, ..., None, None] * features + affine[1, ..., None, None]
    return features.relu() if relu else features
