"""The objects of a result: an index of their outlines by place, their measurements, and which of them are asked for.

May import: what `viewer` may.  Begin with `worker.py`, which makes the index, and `index.py`, which answers from it.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.viewer.objects.building import IndexBuilder
    from seunet.viewer.objects.index import ObjectIndex
else:
    __getattr__, __dir__ = door(__name__)
