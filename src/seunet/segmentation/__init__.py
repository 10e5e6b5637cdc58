"""Image → labels: which files, at which scale, in which tiles, through the network, resumable, into `results`.

May import: `results` and the rooms below.  Begin with `segment_array.py`, then the way of a file.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.segmentation.cluster.cohort import over_cluster
    from seunet.segmentation.found import FoundObject, ObjectTable, Segmentation
    from seunet.segmentation.inputs import Item
    from seunet.segmentation.one_file import segment_file
    from seunet.segmentation.options import Choices
    from seunet.segmentation.scale_choice import known_scale
    from seunet.segmentation.segment_array import segment
    from seunet.segmentation.segment_many import one_after_the_other, segment_all
    from seunet.segmentation.tiled.receptive_field import Span, filter_radii, receptive_radius
    from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
    from seunet.segmentation.tiled.tiling import cut_to, tiles
else:
    __getattr__, __dir__ = door(__name__)
