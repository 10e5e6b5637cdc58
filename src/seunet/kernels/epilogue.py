"""What may follow a convolution at once: a frozen norm and a ReLU."""

from __future__ import annotations

from torch import Tensor


def affine_relu(features: Tensor, affine: Tensor | None, relu: bool) -> Tensor:
    """max(a·y + b, 0) of [B, scales, C, H, W], (a, b) = `affine` [2, scales, C]; each step only where asked for."""
    if affine is not None:
        features = affine[0, ..., None, None] * features + affine[1, ..., None, None]
    return features.relu() if relu else features
