"""A cohort over a Dask cluster, where workers die, hang, differ from each other and lack a disk.

A slide is one task, of the same code as in one process.  A task is three strings and its result is one (JSON), so
nothing of ours is pickled but the name of a function.  A worker that dies is replaced by Dask and its slide is begun
again elsewhere, where the ledger in OUT lets it go on; whoever is still at it is waited for.

May import: what `segmentation` may.  Begin with `cohort.py`, then what a worker does (`worker.py`).
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.segmentation.cluster.cohort import over_cluster
else:
    __getattr__, __dir__ = door(__name__)
