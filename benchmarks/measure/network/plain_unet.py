"""A UNet of torch's own layers alone, with nothing of ours in it: what the kernels are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


def _block(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    return nn.Sequential(*layers)


class PlainUNet(nn.Module):
    """Two 3×3 convolutions per block, max pooling, bilinear upsampling, a 1×1 convolution before each skip."""

    def __init__(self, widths: Sequence[int] = (60, 120, 240, 480, 960), classes: int = 2) -> None:
        super().__init__()
        down = list(pairwise(widths))
        self.encoder = nn.ModuleList([_block(3, widths[0]), *(_block(*pair) for pair in down)])
        self.reducers = nn.ModuleList(nn.Conv2d(wide, narrow, 1) for narrow, wide in reversed(down))
        self.decoder = nn.ModuleList(_block(2 * narrow, narrow) for narrow, _ in reversed(down))
        self.pool, self.upsample = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        skips = [self.encoder[0](images)]
        for block in list(self.encoder)[1:]:
            skips.append(block(self.pool(skips[-1])))
        features = skips.pop()
        for reducer, block in zip(self.reducers, self.decoder, strict=True):
            # The 1×1 convolution before the upsampling is the same map and four times cheaper.
            features = block(torch.cat([skips.pop(), self.upsample(reducer(features))], 1))
        result: Tensor = self.head(features)
        return result
