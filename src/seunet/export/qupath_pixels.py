"""From what QuPath's InstanSeg extension makes of an image back to its pixels, as TorchScript compiles it.

The extension takes whole numbers n of 0 … 255 to (n − low)/(high − low), low and high being percentiles of the
annotation that it does not tell.  Yet neighbouring values lie 1/(high − low) apart: the step is seen in the tile, and
with it every pixel is known but for one number per channel, which is where the brightest one lies.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

WHITE: Final = (255.0, 251.0, 254.0)
"""The brightest red, green and blue of an H&E image: the mean over the training images of MoNuSeg."""
TYPICAL_LOW: Final = (41.0, 19.0, 58.0)
TYPICAL_HIGH: Final = (253.0, 242.0, 245.0)
"""The 0.1 and 99.9 percentiles, the mean over the same images: for values that were no whole numbers."""


class OriginalPixels(nn.Module):
    """Tiles [B, 3, H, W] as the extension gives them → RGB in 0 … 1."""

    def __init__(self) -> None:
        super().__init__()
        self.white, self.low, self.high = list(WHITE), list(TYPICAL_LOW), list(TYPICAL_HIGH)

    def forward(self, images: Tensor) -> Tensor:
        found: list[Tensor] = []
        for tile in images:
            for white, low, high, values in zip(self.white, self.low, self.high, tile):  # noqa: B905 (TorchScript)
                whole = whole_numbers(values.double(), white)
                found.append(values * (high - low) + low if whole is None else whole.float())
        return torch.stack(found).view(images.shape).clamp(0.0, 255.0) / 255.0


def whole_numbers(values: Tensor, white: float) -> Tensor | None:
    """A channel [H, W] by its own steps, the brightest value being `white`; None where there are no equal steps."""
    levels, counts = torch.unique(values[(values > -0.5) & (values < 1.5)], return_counts=True)
    if levels.numel() < 2:
        return None
    width = levels[-1] - levels[0]
    steps = ((levels - levels[0]) / (levels[1:] - levels[:-1]).min()).round()
    step = width / steps[-1]
    off = ((levels - levels[0]) / step - steps).abs().max()
    if bool(steps[-1] > 255) or bool(off > 0.05):
        return None
    if ends_in_a_spike(steps, counts):
        white = 255.0
    # A tile without white is darker than the annotation's high percentile, which is 1.
    brightest = levels[-1].clamp(min=1.0)
    return white - ((brightest - values) / step).round()  # type: ignore[no-any-return]


def ends_in_a_spike(steps: Tensor, counts: Tensor) -> bool:
    """Whether the camera ends at the highest value: it is frequent, and far more so than each of the four below it."""
    below = counts[:-1][steps[:-1] >= steps[-1] - 4].sum() / 4
    return bool(counts[-1] > 0.001 * counts.sum()) and bool(counts[-1] > 3 * below)
