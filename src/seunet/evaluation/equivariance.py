"""How far Φ′(S_s f) = S_s Φ(f) is from true (paper eq. 2, section 4.2 and Appendix C)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.maths.rescaling import rescale

FeatureMap = Callable[[Tensor], Tensor]
"""[B, C, H, W] → [B, scales, channels, H, W]."""

_STRIP_ROWS = 128


def squared_ratio(expected: Tensor, actual: Tensor) -> Tensor:
    """‖expected − actual‖² / ‖expected‖², averaged over the batch: the paper's Δ."""
    difference = (expected - actual).flatten(1).square().sum(1)
    energy = expected.flatten(1).square().sum(1)
    return (difference / energy.clamp(min=torch.finfo(energy.dtype).tiny)).mean()


def interior(features: Tensor, margin: float) -> Tensor:
    """The map without `margin` (a share of its size) on each side, where zero padding is seen."""
    if not 0 <= margin < 0.5:
        raise InputError(f"`margin` (={margin:g}) must be from 0 to below 0.5, a share of the image's size")
    rows, columns = (round(size * margin) for size in features.shape[-2:])
    return features[..., rows : features.shape[-2] - rows, columns : features.shape[-1] - columns]


def error_matrix(before: FeatureMap, after: FeatureMap, images: Tensor, scale: float, margin: float = 0.0) -> Tensor:
    """Δ_{s,k,k′} = ‖S_s Φ_k(f) − Φ′_k′(S_s f)‖² / ‖S_s Φ_k(f)‖² for all pairs of scales: [γ, γ] (Appendix C).

    Row k is the scale on the original image, column k′ the one on the rescaled image.
    """
    return pair_errors(before(images), after(rescale(images, scale)), scale, margin)


def pair_errors(original: Tensor, rescaled: Tensor, scale: float, margin: float = 0.0) -> Tensor:
    """`error_matrix` of Φ(f) and Φ′(S_s f): of [B, γ, C, H, W] and [B, γ, C, sH, sW] all pairs of scales.

    ‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩ in double precision, a strip of rows at a time: one pass for all γ² pairs.
    """
    target = rescale(original.flatten(1, 2), scale).view(*original.shape[:3], *rescaled.shape[3:])
    target, rescaled = interior(target, margin), interior(rescaled, margin)
    squares = target.new_zeros(2, *target.shape[:2], dtype=torch.float64)
    products = target.new_zeros(*target.shape[:2], rescaled.shape[1], dtype=torch.float64)
    for top in range(0, target.shape[3], _STRIP_ROWS):
        a, b = (maps[..., top : top + _STRIP_ROWS, :].flatten(2).double() for maps in (target, rescaled))
        squares = squares + torch.stack([a.square().sum(2), b.square().sum(2)])
        products = products + a @ b.mT
    energy = squares[0, :, :, None]
    difference = (energy + squares[1, :, None] - 2 * products).clamp(min=0)
    return (difference / energy.clamp(min=torch.finfo(target.dtype).tiny)).mean(0).to(target.dtype)


def without_mean(features: Tensor) -> Tensor:
    """Each map without its mean over the pixels, which any network rescales perfectly: [B, γ, C, H, W]."""
    return features - features.mean((3, 4), keepdim=True)


def assert_equivariant(
    features: FeatureMap, images: Tensor, scale: float, tolerance: float, margin: float = 0.2
) -> float:
    """Check that some pair of scales matches to `tolerance` when the image is rescaled by `scale`; returns the error.

    Reusable with anybody's network: `features` is any function [B, C, H, W] → [B, scales, channels, H, W].
    """
    with torch.no_grad():
        matrix = error_matrix(features, features, images, scale, margin)
    best = float(matrix.min())
    if not best <= tolerance:
        table = "; ".join(" ".join(f"{value:.3f}" for value in row) for row in matrix.tolist())
        raise AssertionError(
            f"not equivariant at s = {scale:g}: the best pair of scales differs by {best:.4f} > {tolerance:g} ({table})"
        )
    return best
