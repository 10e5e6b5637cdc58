"""What was found, to look at: over the slide's thumbnail, and which head won where; with a legend.

May import: what `results` may.  Begin with `overlay.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.results.pictures.heads_map import head_colors
    from seunet.results.pictures.legend import shades
    from seunet.results.pictures.overlay import overlay_picture, write_overlay
else:
    __getattr__, __dir__ = door(__name__)
