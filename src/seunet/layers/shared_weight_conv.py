"""What SESN's and DISCO's convolutions share: one set of weights, a basis for each scale."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from seunet.errors import InputError
from seunet.kernels.dispatch import affine_relu
from seunet.limits import MAX_CHANNELS, MAX_FILTER_RADIUS, MAX_SCALES

MIN_SCALE = 0.5
"""Below half a pixel a filter no longer reaches the neighbouring pixels."""


class ScaleOptions(TypedDict, total=False):
    """The options of both layers: their scales, whether they read an image, a bias, where to keep them."""

    scales: Sequence[float]
    lifting: bool
    bias: bool
    device: torch.device | str | None
    dtype: torch.dtype | None


class ScaleConvolution(nn.Module, ABC):
    r"""y[b, s, o] = bias[o] + Σ_c κ_s[o, c] ⋆ x[b, s, c],    κ_s[o, c] = Σ_k weight[o, c, k] ψ_k(·; s).

    Every scale has its own basis ψ(·; s) and all share `weight` [out_channels, in_channels, basis] and `bias`
    [out_channels].  Zero padding; the size stays.  A lifting layer reads the same image at every scale:
    [B, C, H, W] or [B, 1, C, H, W] → [B, S, C′, H, W]; a hidden one maps [B, S, C, H, W] → [B, S, C′, H, W].

    Weights are drawn from N(0, 1/(in_channels·basis)).  The basis functions are unit vectors at the smallest
    scale, so there white noise of variance 1 leaves the layer with variance 1.  The bias starts at 0.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        basis: int,
        scales: Sequence[float] = (1, 2, 3, 4, 5),
        lifting: bool = False,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = checked_channels("in_channels", in_channels)
        self.out_channels = checked_channels("out_channels", out_channels)
        self.scales = checked_scales(scales)
        self.lifting = lifting
        shape = (out_channels, in_channels, basis)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype)) if bias else None

    @abstractmethod
    def bases(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the buffers that hold ψ: they follow from the scales and are not in `state_dict`."""

    def set_bases(self) -> None:
        """Make ψ, on the CPU wherever else tensors are made by default, and take it to the weights."""
        with torch.device("cpu"):
            for name, values in self.bases():
                self.register_buffer(name, values.to(self.weight), persistent=False)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        # A layer that was made on the meta device has weights now, and no basis yet.
        self.set_bases()

    def reset_parameters(self) -> None:
        """Draw the weights anew; the variance is stated above."""
        self.set_bases()
        nn.init.normal_(self.weight, std=(self.in_channels * self.weight.shape[2]) ** -0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @abstractmethod
    def convolve(self, image: Tensor, index: int) -> Tensor:
        """[B, C, H, W] → [B, C′, H, W] at `scales[index]`, with the bias."""

    def forward(self, images: Tensor, affine: Tensor | None = None, relu: bool = False) -> Tensor:
        maps = images.unsqueeze(1) if self.lifting and images.ndim == 4 else images
        scales_read = 1 if self.lifting else len(self.scales)
        fits = maps.ndim == 5 and maps.shape[1:3] == (scales_read, self.in_channels)
        if not fits or min(maps.shape[3:]) < 1:
            raise self._misshapen(images)
        # One unbind, not a slice for each scale: its gradient is one stack, not a sum of S zero-padded maps.
        planes = maps.unbind(1) * (len(self.scales) // scales_read)
        result = torch.stack([self.convolve(plane, index) for index, plane in enumerate(planes)], 1)
        return affine_relu(result, affine, relu)

    def _misshapen(self, images: Tensor) -> InputError:
        c, s = self.in_channels, len(self.scales)
        wanted = f"[B, {c}, H, W] or [B, 1, {c}, H, W]" if self.lifting else f"[B, {s}, {c}, H, W]"
        return InputError(f"`images` (of shape {list(images.shape)}) must be {wanted} with H, W ≥ 1")

    def extra_repr(self) -> str:
        kind = "lifting" if self.lifting else "hidden"
        scales = ", ".join(f"{scale:g}" for scale in self.scales)
        channels = f"{self.in_channels}, {self.out_channels}"
        return f"{channels}, scales=({scales}), {kind}, bias={self.bias is not None}"


def checked_channels(name: str, count: int) -> int:
    """`count`, if it is a whole number of channels."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_CHANNELS:
        raise InputError(f"`{name}` (={count!r}) must be a whole number from 1 to {MAX_CHANNELS}")
    return count


def checked_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """`scales` as floats, if every one is a number a filter can have."""
    if not isinstance(scales, list | tuple) or not scales:
        raise InputError(f"`scales` (={_shown(scales)}) must hold at least one positive number")
    if len(scales) > MAX_SCALES:
        raise InputError(f"`scales` (of {len(scales)} numbers) must hold at most {MAX_SCALES}")
    for scale in scales:
        number = isinstance(scale, int | float) and not isinstance(scale, bool) and math.isfinite(scale)
        if not number or not MIN_SCALE <= scale <= MAX_FILTER_RADIUS:
            raise InputError(f"`scales` (={_shown(scales)}) must hold numbers from {MIN_SCALE} to {MAX_FILTER_RADIUS}")
    return tuple(float(scale) for scale in scales)


def _shown(scales: object) -> str:
    return repr(list(scales) if isinstance(scales, tuple) else scales)
