"""The fast paths: one function per operation, equal to those of `reference.py`; its compiled loops are in the
file of the same name in `loops/`.

May import: `maths`, `images`, `storage` and the foundations.  Begin with `dispatch.py`, which chooses.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.kernels.dispatch import batch_norm_relu, kernel_backend
    from seunet.kernels.resizing import join_upsampled, max_pool
else:
    __getattr__, __dir__ = door(__name__)
