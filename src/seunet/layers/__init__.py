"""nn.Modules that hold parameters; `forward` is one call into maths or kernels.  Feature maps are
[batch, scales, channels, height, width] everywhere in this room.

May import: `kernels`, `maths` and the rooms below.  Begin with `gaussian_conv.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.layers.disco_conv import DiscreteScaleConv2d
    from seunet.layers.gaussian_conv import GaussianConv2d
    from seunet.layers.scalewise import Pooling, ScaleNorm2d, ScaleProjection, SharedPointwise
    from seunet.layers.sesn_conv import SteerableConv2d
else:
    __getattr__, __dir__ = door(__name__)
