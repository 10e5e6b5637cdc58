"""Parse → call → print: the only room that prints, reads argv or exits.  One file per verb.

May import: every room.  Begin with `main.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.cli.evaluate import names, tile_sizes
    from seunet.cli.main import app, called, run
    from seunet.cli.progress import progress_of
else:
    __getattr__, __dir__ = door(__name__)
