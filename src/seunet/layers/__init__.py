"""nn.Modules that hold parameters; `forward` is one call into maths or kernels.

Feature maps are [batch, scales, channels, height, width] everywhere in this room.
"""

from seunet.layers.disco_conv import DiscreteScaleConv2d
from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.layers.scalewise import Pooling, ScaleNorm2d, ScaleProjection, SharedPointwise
from seunet.layers.sesn_conv import SteerableConv2d

__all__ = [
    "DiscreteScaleConv2d",
    "GaussianConv2d",
    "Pooling",
    "ScaleNorm2d",
    "ScaleProjection",
    "SharedPointwise",
    "SteerableConv2d",
]
