"""The layouts of data sets as they are published, each turned into a plan for `prepare`.

May import: what `data` may.  Begin with `monuseg.py`, the shortest.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.data.formats.bcss import PUBLISHED, plan_bcss
    from seunet.data.formats.folder import FolderRules, classes_of, plan_folder
    from seunet.data.formats.imagescope import parse_annotation
    from seunet.data.formats.monuseg import plan_monuseg
else:
    __getattr__, __dir__ = door(__name__)
