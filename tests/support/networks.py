"""Small networks with weights that behave: norms that have seen a picture, so that layers keep their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

import seunet
from seunet.models import ScaleUNet


def picture(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    """Blots of several sizes and noise, uint8 [height, width, 3]."""
    random = torch.Generator().manual_seed(seed)
    total = torch.zeros(1, 3, height, width)
    for size in (1, 4, 16, 64):
        grid = torch.rand(1, 3, height // size + 2, width // size + 2, generator=random)
        total += interpolate(grid, size=(height, width), mode="bilinear")
    return (total[0].permute(1, 2, 0) / 4 * 255).to(torch.uint8).numpy()


def calm_model(name: str = "seunet", seed: int = 0, **options: Any) -> ScaleUNet:
    """A model with random weights in evaluation mode."""
    torch.manual_seed(seed)
    model = seunet.create_model(name, **options)
    with torch.no_grad():
        for step in range(6):
            model(torch.from_numpy(picture(64, 64, step)).permute(2, 0, 1)[None].float() / 255)
            for module in model.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.momentum = 0.5
        model.eval()
        logits = model(torch.from_numpy(picture(96, 96, seed)).permute(2, 0, 1)[None].float() / 255)
        # Every class somewhere: the median of each logit is 0.
        model.head.convolution.bias -= logits.transpose(0, 2).flatten(1).median(1).values  # type: ignore[operator]
    return model
