"""From one map a scale to one map."""

from __future__ import annotations

from torch import Tensor, nn

from seunet.errors import InputError


class ScaleProjection(nn.Module):
    """y[b, 0, c, p] = max_s x[b, s, c, p]: [B, S, C, H, W] → [B, 1, C, H, W].

    A change of scale of the image moves the responses along s, so their maximum stays.
    """

    def forward(self, maps: Tensor) -> Tensor:
        if maps.ndim != 5 or maps.shape[1] < 1:
            raise InputError(f"`maps` (of shape {list(maps.shape)}) must be [B, scales, C, H, W] with scales ≥ 1")
        return maps.amax(1, keepdim=True)
