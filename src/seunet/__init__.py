"""seunet: segment H&E histopathology images at any magnification, whether or not it is known.

Every room of the package offers its public names at its door (`from seunet.layers import GaussianConv2d`); what most
people need is offered here.  Nothing is loaded before it is used.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.kernels.dispatch import kernel_backend
    from seunet.maths.fusion import fuse
    from seunet.models.files import load
    from seunet.models.registry import create_model, list_models
    from seunet.scale.estimator import estimate_scale
    from seunet.segmentation.segment_array import segment
else:
    __getattr__, __dir__ = door(__name__)

__version__ = "0.1.0"
