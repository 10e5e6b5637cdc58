"""`seunet view`: slides and results in a browser, served to this machine alone.

May import: `segmentation`, `results` and the rooms below, of which it needs `results`, `images` and `storage`.
Begin with `answers.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.viewer.app import viewer_app
    from seunet.viewer.finding import Shown, find_shown
    from seunet.viewer.serve import free_port, serve_viewer
else:
    __getattr__, __dir__ = door(__name__)
