"""What is compiled is kept on disk, and Numba is loaded when something is not there: `files.py` says where it is kept,
`workers.py` keeps the kernels as machine code, `functions.py` keeps plain loops as Numba packs them, and
`first_call.py` makes a plain loop wait for its first call.

May import: `storage`, `jobs.py` and the foundations.  Begin with `workers.py`.
"""

from typing import TYPE_CHECKING

from seunet.doors import door

if TYPE_CHECKING:
    from seunet.kernels.compiling.first_call import compiled
    from seunet.kernels.compiling.functions import worker_function
    from seunet.kernels.compiling.workers import worker_address
else:
    __getattr__, __dir__ = door(__name__)
