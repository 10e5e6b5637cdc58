"""The scale convolution of the paper: groups of Gaussian-derivative filters that share weights and differ in σ."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import Tensor, nn

from seunet.errors import InputError, check_known
from seunet.kernels.dispatch import Pointwise, jet_convolution
from seunet.kernels.kept import Kept
from seunet.limits import MAX_CHANNELS, MAX_ORDER, MAX_SCALES
from seunet.maths.gaussian import DISCRETISATIONS, full_taps, half_taps, jet_orders, jet_size
from seunet.maths.sigma import SigmaRange, constrain, equal_range, filter_radius, free_sigma
from seunet.recording import is_recording

SIGMA_MODES: Final = ("constrained", "fixed", "free", "free_from_one")


class GaussianConv2d(nn.Module):
    r"""f_k ↦ Σ_{i+j ≤ N} α_ij (G^ij(σ_k) ⋆ f_k) for each of γ scales k, with α shared by the scales (paper eq. 4).

    The lifting form sees one image at every scale: [B, C_in, H, W] → [B, γ, C_out/γ, H, W]; given [B, γ, C_in, H, W],
    each scale sees an image of its own.  The hidden form keeps the scales apart: [B, γ, C_in/γ, H, W] → [B, γ, C_out/γ,
    H, W].  Zero padding, no bias.

    Args:
        in_channels: of the image (lifting) or of all scales together (hidden; divisible by `scales`).
        out_channels: of all scales together; divisible by `scales`.
        scales: γ.
        order: N, the highest total order of derivatives.
        sigma: "constrained" (σ trained inside its interval, paper eq. 6), "fixed" (the midpoints), "free" (σ = 2ˣ from
            the midpoints) or "free_from_one" (σ = 2ˣ from σ = 1 for all: the N-Jet start, which never separates).
        sigma_range: the intervals; the paper's first layer, (0, 2.5) in γ parts, if None.
        lifting: see above.
        discretisation: "sampled" (the paper's), "integrated" or "discrete".
        truncation: filters end at ⌈truncation · σ⌉ pixels.

    α is drawn from N(0, 1/(C_in/γ · E)), E = the energy Σ G^ij² of the whole jet, averaged over the scales: white noise
    of variance 1 comes out with variance 1 on average over the scales.
    """

    sigma_position: nn.Parameter | None
    _known_sigmas: tuple[Any, list[float]] | None = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        scales: int = 5,
        order: int = 1,
        sigma: str = "constrained",
        sigma_range: SigmaRange | None = None,
        lifting: bool = False,
        discretisation: str = "sampled",
        truncation: float = 2.0,
    ) -> None:
        super().__init__()
        self.scales, self.order, self.lifting = scales, order, lifting
        self.mode, self.discretisation, self.truncation = sigma, discretisation, truncation
        self._check_arguments(in_channels, out_channels)
        self.sigma_range = sigma_range or equal_range(0.0, 2.5, scales)
        if self.sigma_range.scales != scales:
            raise InputError(f"`sigma_range` has {self.sigma_range.scales} intervals for `scales` (={scales})")
        self.in_channels = in_channels if lifting else in_channels // scales
        self.out_channels = out_channels // scales
        self.coefficients = nn.Parameter(torch.empty(jet_size(order), self.in_channels, self.out_channels))
        if sigma == "fixed":
            self.register_parameter("sigma_position", None)
        else:
            shared = sigma == "constrained" and self.sigma_range.tied
            self.sigma_position = nn.Parameter(torch.empty(1 if shared else scales))
        self._kept = Kept()
        self._set_bounds(1.0)
        self.reset_parameters()

    def _check_arguments(self, in_channels: int, out_channels: int) -> None:
        for name, value, lowest, highest in (
            ("in_channels", in_channels, 1, MAX_CHANNELS),
            ("out_channels", out_channels, 1, MAX_CHANNELS),
            ("scales", self.scales, 1, MAX_SCALES),
            ("order", self.order, 0, MAX_ORDER),
        ):
            if not lowest <= value <= highest:
                raise InputError(f"`{name}` (={value}) must be from {lowest} to {highest}")
        if not self.lifting and in_channels % self.scales:
            raise InputError(f"`in_channels` (={in_channels}) must be divisible by `scales` (={self.scales})")
        if out_channels % self.scales:
            raise InputError(f"`out_channels` (={out_channels}) must be divisible by `scales` (={self.scales})")
        check_known("sigma mode", self.mode, SIGMA_MODES)
        check_known("discretisation", self.discretisation, DISCRETISATIONS)
        if not 0 < self.truncation <= 16:
            raise InputError(f"`truncation` (={self.truncation:g}) must be above 0 and at most 16 standard deviations")

    def _set_bounds(self, factor: float, dtype: torch.dtype | None = None) -> None:
        """Bounds as buffers that move with the module but are not part of `state_dict`: the config defines them."""
        self.factor, self.bounds = factor, self.sigma_range.scaled(factor)
        device = self.coefficients.device
        for name, values in (("lower", self.bounds.lower), ("upper", self.bounds.upper)):
            # By way of the default type, as if `.to(dtype)` had followed.
            bound = torch.tensor(values, device="cpu").to(device=device, dtype=dtype)
            self.register_buffer(name, bound, persistent=False)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        # A layer that was made on the meta device has weights now, and no bounds yet.
        self._set_bounds(self.factor, self.get_buffer("lower").dtype)

    def rescale_sigma(self, factor: float) -> None:
        """Multiply every σ and its bounds: the same filter for structures `factor` times as large."""
        self._set_bounds(self.factor * factor)

    def keep_scale(self, number: int) -> None:
        """Leave this scale alone of all γ; what is trained stays shared with whoever shared it."""
        kept, self.scales = self.sigma_range, 1
        self.sigma_range = SigmaRange((kept.lower[number],), (kept.upper[number],), kept.tied)
        if self.sigma_position is not None and len(self.sigma_position) > 1:
            self.sigma_position = nn.Parameter(self.sigma_position.detach()[number : number + 1])
        self._set_bounds(self.factor)

    def reset_parameters(self) -> None:
        """α from a variance-preserving normal distribution, σ in the middle of its interval."""
        if self.coefficients.is_meta:
            return
        self._set_bounds(self.factor, self.get_buffer("lower").dtype)
        with torch.no_grad():
            if self.sigma_position is not None:
                if self.mode == "free":
                    midpoints = torch.tensor(self.sigma_range.midpoints, device=self.sigma_position.device)
                    self.sigma_position.copy_(midpoints.clamp(min=0.1).log2())
                else:
                    self.sigma_position.zero_()
            self.coefficients.normal_(0.0, math.sqrt(1 / (self.in_channels * self._mean_energy())))

    def _mean_energy(self) -> float:
        """Σ over the jet of Σ_pixels G^ij², the gain of white noise, averaged over the scales."""
        energy = full_taps(half_taps(*self.filters(), self.order, self.discretisation)).square().sum(-1)
        return float(sum(energy[:, i] * energy[:, j] for i, j in jet_orders(self.order)).mean())  # type: ignore[union-attr]

    def sigmas(self) -> Tensor:
        """σ of each scale, [γ]: differentiable in what is trained."""
        position = self.sigma_position
        if torch.is_grad_enabled() or is_recording() or position is None or position.device.type != "cpu":
            return self._computed_sigmas()
        # A network that is only used has the same ones every time.  Known by the numbers themselves: whoever changes
        # these, and however, is answered rightly.
        known = position.tolist(), self.mode, self.bounds, position.dtype
        if self._known_sigmas is None or self._known_sigmas[0] != known:
            self._known_sigmas = known, self._computed_sigmas().tolist()
        return torch.tensor(self._known_sigmas[1], dtype=self.get_buffer("lower").dtype, device="cpu")

    def _computed_sigmas(self) -> Tensor:
        lower, upper = self.get_buffer("lower"), self.get_buffer("upper")
        if self.sigma_position is None:
            return ((lower + upper) / 2).clamp(min=0.1)
        if self.mode == "constrained":
            return constrain(self.sigma_position, lower, upper)
        return free_sigma(self.sigma_position) * self.factor

    def filters(self) -> tuple[Tensor, list[int]]:
        """σ and the filters' radius at each scale.

        Constrained σ have the radius of their interval's upper end: it never changes in training, so the loss has no
        jumps, and for the paper's intervals it is eq. 7 to the letter.
        """
        sigma = self.sigmas()
        if self.mode == "constrained":
            largest = self.bounds.upper
        else:
            largest = self.bounds.midpoints if self.mode == "fixed" else tuple(sigma.tolist())
        return sigma, [filter_radius(value, self.truncation) for value in largest]

    def forward(
        self,
        features: Tensor,
        affine: Tensor | None = None,
        relu: bool = False,
        rows: slice | None = None,
        beside: Tensor | None = None,
        then: Pointwise | None = None,
    ) -> Tensor:
        """See the class; `affine` [2, γ, C_out/γ] (`ScaleNorm2d.folded`), `relu` and `then` may follow at once.

        `rows`: those of the result that are wanted, where what is above and below them is there to be looked at.
        `beside` has the channels that follow those of `features`, where they are two maps.
        """
        features = self._checked(features, 0 if beside is None else beside.shape[2])
        sigma, radii = self.filters()
        return jet_convolution(
            features, self.coefficients, sigma, radii, self.discretisation, affine, relu, rows, beside, then, self._kept
        )

    def _checked(self, features: Tensor, more: int) -> Tensor:
        axes = "channels" if self.lifting else "scales, channels"
        if features.ndim != 5 and not (self.lifting and features.ndim == 4):
            raise InputError(f"input of shape {list(features.shape)} must be [batch, {axes}, height, width]")
        if not features.is_floating_point():
            raise InputError(f"input of type {features.dtype} must be floating point, e.g. images.float() / 255")
        one_for_all = features.ndim == 4
        if one_for_all:
            features = features[:, None]
        expected = (1 if one_for_all else self.scales, self.in_channels - more)
        if tuple(features.shape[1:3]) != expected:
            raise InputError(
                f"input of shape {list(features.shape)} must have {expected[0]} scales of {expected[1]} channels"
            )
        if features.shape[3] * features.shape[4] == 0:
            raise InputError(f"input of shape {list(features.shape)} has no pixels")
        return features

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, scales={self.scales}, order={self.order}, sigma={self.mode}, "
            f"lifting={self.lifting}, discretisation={self.discretisation}, factor={self.factor:g}"
        )
