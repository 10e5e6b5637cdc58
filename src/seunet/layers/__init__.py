"""nn.Modules that hold parameters; `forward` is one call into maths or kernels.

Feature maps are [batch, scales, channels, height, width] everywhere in this room.
"""

from seunet.layers.gaussian import GaussianConv2d
from seunet.layers.scalewise import Pooling, ScaleNorm2d, SharedPointwise, upsample_to

__all__ = ["GaussianConv2d", "Pooling", "ScaleNorm2d", "SharedPointwise", "upsample_to"]
