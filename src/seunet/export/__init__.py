"""Models for other programs: ONNX, TorchScript, OpenVINO, bioimage.io, QuPath; and two runtimes for our own.

May import: `models` and the rooms below.  Begin with `portable.py`, then `write.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.export.choice import Chosen, choose
    from seunet.export.onnx_graph import onnx_model
    from seunet.export.portable import PortableNetwork, portable_network
    from seunet.export.qupath_pixels import OriginalPixels
    from seunet.export.runtimes import BLOCK, RUNTIMES, by_onnx, run_by
    from seunet.export.write import TARGETS, write_export
else:
    __getattr__, __dir__ = door(__name__)
