"""The one look of our pages: the viewer, the demo, the reports.  Plain CSS, light and dark, no font from elsewhere.

May import: `doors`.  Begin with `css.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.look.css import look_css
else:
    __getattr__, __dir__ = door(__name__)
