"""Parse → call → print: the only room that prints, reads argv or exits.  One file per verb.

May import: every room.  Begin with `main.py`.
"""

from typing import TYPE_CHECKING

from seunet.doors import door

if TYPE_CHECKING:
    from seunet.cli.evaluate import names, tile_sizes
    from seunet.cli.main import app, run
else:
    __getattr__, __dir__ = door(__name__)
