"""A network over an image in tiles: what a tile sees, its pixels, its prediction row by row, one tile after the other.

May import: what `segmentation` may.  Begin with `tile_predictor.py`, then `tile_loop.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.segmentation.tiled.receptive_field import Span, filter_radii, receptive_radius
    from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
    from seunet.segmentation.tiled.tiling import cut_to
else:
    __getattr__, __dir__ = door(__name__)
