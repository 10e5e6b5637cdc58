"""The plain UNet: ordinary 3×3 convolutions in the same U."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import conv2d


class PlainConv2d(nn.Module):
    """A 3×3 convolution with bias on [B, 1, C, H, W]."""

    def __init__(self, in_channels: int, out_channels: int, *, lifting: bool = False) -> None:
        super().__init__()
        self.lifting = lifting
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)

    def forward(self, features: Tensor, affine: Tensor | None = None, relu: bool = False) -> Tensor:
        weight, bias = self.convolution.weight, self.convolution.bias
        if affine is not None:
            # A frozen norm folds into the weights: the baseline gets what our own layer gets.
            scale, shift = affine[0, 0], affine[1, 0]
            weight, bias = weight * scale[:, None, None, None], bias * scale + shift  # type: ignore[operator]
        result = conv2d(features if self.lifting else features[:, 0], weight, bias, padding=1)
        return (result.relu_() if relu else result)[:, None]
