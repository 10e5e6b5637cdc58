"""Two convolutions with their norms, and what follows them, in as few passes over the maps as may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.layers.hooks import hooked
from seunet.layers.scalewise import ScaleNorm2d, SharedPointwise
from seunet.recording import is_recording, is_tracing


class ConvolutionBlock(nn.Module):
    """(convolution → norm → ReLU) × 2."""

    def __init__(self, convolutions: Sequence[nn.Module], norms: Sequence[ScaleNorm2d]) -> None:
        super().__init__()
        self.convolutions, self.norms = nn.ModuleList(convolutions), nn.ModuleList(norms)

    def reads_two_maps(self) -> bool:
        """Whether `forward` takes two maps as they are now: where nobody learns from them, looks at them or records."""
        first, recording = self.convolutions[0], is_recording()
        return (
            _fusing() and not recording and isinstance(first, GaussianConv2d) and not hooked(self, first, *self.norms)
        )

    def mixes_at_once(self, pointwise: nn.Module) -> bool:
        """Whether `forward` takes the 1×1 convolution that follows: where nobody looks at what lies between."""
        fusing = _fusing() and not is_recording() and type(pointwise) is SharedPointwise
        return fusing and not hooked(self, pointwise, *pointwise.children())

    def forward(self, features: Tensor, beside: Tensor | None = None, then: SharedPointwise | None = None) -> Tensor:
        """`beside`: a map whose channels follow those of `features`, if this block `reads_two_maps`.

        `then`: what follows the block, if it `mixes_at_once`.
        """
        fusing = _fusing()
        more: dict[str, Any] = {} if beside is None else {"beside": beside}
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            if hooked(norm, *norm.children()):
                features = norm(convolution(features)).relu()
                continue
            folded = norm.folded() if fusing and not hooked(convolution, *convolution.children()) else None  # type: ignore[operator]
            if folded is None:
                features = norm(convolution(features, **more), relu=True)
            else:
                # Frozen statistics are an affine map, which the convolution applies while its result is in the cache.
                last = convolution is self.convolutions[-1] and isinstance(convolution, GaussianConv2d)
                if then is not None and last:
                    more["then"], then = then.parts(), None
                features = convolution(features, affine=folded, relu=True, **more)
            more = {}
        return features if then is None else then(features)


def followed(pointwise: nn.Module | None, block: nn.Module, *maps: Tensor) -> Tensor:
    """The block and the 1×1 convolution behind it, if there is one: at once where the block can."""
    if pointwise is not None and block.mixes_at_once(pointwise):  # type: ignore[operator]
        return block(*maps, then=pointwise)  # type: ignore[no-any-return]
    features: Tensor = block(*maps)
    return features if pointwise is None else pointwise(features)


def _fusing() -> bool:
    """A trace is compared with one made without gradients: both must hold the same steps."""
    return not (torch.is_grad_enabled() or is_tracing())
