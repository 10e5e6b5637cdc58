"""Which σ on a rescaled image answers to which σ on the original: the numbers of the paper's Appendices C and D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.evaluation.equivariance import error_matrix
from seunet.kernels.reference import dense_filters
from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.maths.gaussian import half_taps
from seunet.maths.sigma import equal_range

APPENDIX_SIGMAS: Final = equal_range(0.25, 2.75, 5)
"""Intervals whose midpoints are the σ of Appendix B: 0.5, 1, 1.5, 2, 2.5."""

APPENDIX_SCALES: Final = (0.25, 0.3, 0.35, 0.42, 0.5, 0.59, 0.71, 0.84, 1.19, 1.41, 1.68, 2.0, 2.38, 2.83, 3.36, 4.0)
"""The s of Appendix C: steps of 2^¼ without s = 1."""

EXPLAINED_SCALES: Final = (0.5, 2.0)
"""Those that the command explains in words."""


@dataclass(frozen=True)
class ScaleMatch:
    """Δ_{s,k,k′} at one s, [γ, γ]: row k is the σ on the original image, column k′ the σ on the rescaled one."""

    scale: float
    sigmas: tuple[float, ...]
    errors: Tensor

    @property
    def best(self) -> tuple[int, int]:
        """(k, k′) of the lowest Δ."""
        row, column = divmod(int(self.errors.argmin()), len(self.sigmas))
        return row, column

    @property
    def ratio(self) -> float:
        """σ_k′ / σ_k of the best pair; scale equivariance says it is s."""
        row, column = self.best
        return self.sigmas[column] / self.sigmas[row]


@dataclass(frozen=True)
class FilterStudy:
    """One filter at several σ, and how its answers match across rescalings of one image."""

    image: Tensor
    """uint8 [H, W, 3], as it was given."""
    sigmas: tuple[float, ...]
    filters: tuple[Tensor, ...]
    """[τ, τ] for each σ."""
    matches: tuple[ScaleMatch, ...]


def random_filter_layer(seed: int = 0) -> GaussianConv2d:
    """F_k = Σ_{i+j ≤ 1} α_ij G^ij(σ_k) with α ~ N(0, 1) from `seed`, shared by the five σ (Appendix B).

    N = 1 is the order of the paper's experiments.  Which pair matches best depends on α at the ends of the range: on
    the demo's image seeds 0 to 5 all find the ratio s at s = 0.5 and 2, but only three at 0.25 and four at 4.  At
    N = 2 it depends on α everywhere: for some, σ = 0.5, cut to 3×3 pixels, matches itself best at every s.
    """
    layer = GaussianConv2d(
        1, APPENDIX_SIGMAS.scales, order=1, sigma="fixed", sigma_range=APPENDIX_SIGMAS, lifting=True
    ).requires_grad_(False)
    layer.coefficients.normal_(generator=torch.Generator().manual_seed(seed))
    return layer


def layer_filters(layer: GaussianConv2d) -> tuple[Tensor, ...]:
    """The filter from the first channel to the first channel at each σ: [τ, τ], τ = 2⌈2σ⌉ + 1 (paper eq. 7)."""
    sigma, radii = layer.filters()
    taps = half_taps(sigma, radii, layer.order, layer.discretisation).to(layer.coefficients.dtype)
    return tuple(dense_filters(taps[k, :, : radius + 1], layer.coefficients)[0, 0] for k, radius in enumerate(radii))


def standardised_grey(image: Tensor) -> Tensor:
    """uint8 [H, W, 3] → [1, 1, H, W] of mean 0 and variance 1.

    Smoothing filters of every σ agree on the mean of an image; left in, it is most of ‖S_s(F_k ⋆ f)‖² and hides how
    differently they answer to the structures.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != torch.uint8:
        raise InputError(f"image of shape {list(image.shape)} and type {image.dtype} must be uint8 [height, width, 3]")
    grey = image.float().mean(2)
    spread = grey.std(correction=0)
    if not spread > 0:
        raise InputError("the image has one grey value only; choose one with structures")
    return ((grey - grey.mean()) / spread)[None, None]


def filter_study(image: Tensor, scales: Sequence[float] = APPENDIX_SCALES, seed: int = 0) -> FilterStudy:
    """The filters of Appendix B, and Δ_{s,k,k′} = ‖S_s(F_k ⋆ f) − F_k′ ⋆ S_s f‖² / ‖S_s(F_k ⋆ f)‖² of Appendix C."""
    layer, grey = random_filter_layer(seed), standardised_grey(image)
    sigmas = tuple(layer.sigmas().tolist())
    matches = tuple(ScaleMatch(scale, sigmas, error_matrix(layer, layer, grey, scale)) for scale in scales)
    return FilterStudy(image, sigmas, layer_filters(layer), matches)


def explanation(study: FilterStudy) -> str:
    """What a newcomer sees in the picture, in plain lines."""
    explained = [match for match in study.matches if match.scale in EXPLAINED_SCALES]
    return "\n".join(
        [
            "",
            f"Top row: one filter at {len(study.sigmas)} sizes. The weights are the same, only σ differs.",
            f"Below: the image rescaled by s ({len(study.matches)} values) and filtered with every σ. A matrix has",
            "the error between filter-then-rescale and rescale-then-filter. It is lowest where the ratio of the",
            "two σ is s, or near it if no pair has that ratio:",
            *(_match_line(match) for match in explained),
            "SEUNet runs all σ side by side with shared weights, so that one of them fits when the",
            "magnification changes.",
        ]
    )


def _match_line(match: ScaleMatch) -> str:
    row, column = match.best
    original, rescaled = (f"{match.sigmas[k]:g}" for k in (row, column))
    return (
        f"  s = {match.scale:g}: σ {original} on the original and σ {rescaled} on the rescaled image match best, "
        f"error {match.errors[row, column]:.2%}; with σ {original} on both it is {match.errors[row, row]:.2%}"
    )
