"""The one look of our pages: the viewer, the demo, the reports.  Plain CSS, light and dark, no font from elsewhere.

May import: `doors`.  Begin with `css.py`.
"""

from typing import TYPE_CHECKING

from seunet.doors import door

if TYPE_CHECKING:
    from seunet.look.css import look_css
else:
    __getattr__, __dir__ = door(__name__)
