"""Labels → files: the label plane, objects and how touching ones are separated, outlines, GeoJSON, tables, label TIFF,
OME-Zarr, overlay.

May import: `training`, `data` and the rooms below, of which it needs `images` and `storage`.  Begin with `write.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.results.cohort import result_names, summarise
    from seunet.results.find_objects import objects
    from seunet.results.frame import NOT_ANALYSED, Frame
    from seunet.results.geojson import write_geojson
    from seunet.results.label_plane import ArrayPlane, Labels, Plane
    from seunet.results.label_tiff import write_label_tiff
    from seunet.results.measures import CONFIDENCE, HAEMATOXYLIN, MeasuredPlane
    from seunet.results.ome_zarr import write_probabilities
    from seunet.results.pictures.heads_map import head_colors
    from seunet.results.pictures.overlay import write_overlay
    from seunet.results.planes import HEADS, LABELS, PROBABILITIES
    from seunet.results.write import write_results
else:
    __getattr__, __dir__ = door(__name__)
