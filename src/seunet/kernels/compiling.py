"""What Numba compiles and keeps on disk, what it was compiled from, and room for the buffers of the loops."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba import types
from numba.core.ccallback import CFunc

from seunet.kernels.compiled_cache import cache_of

COMPILED_FILES: Final = (
    "compiling.py",
    "simd.py",
    "filter_loops.py",
    "strip_loops.py",
    "jet_loops.py",
    "pooling_loops.py",
    "batch_norm_loops.py",
)

VECTOR_BYTES: Final = 64

_JOB: Final = (types.CPointer(types.intp),), types.void
_scratch = threading.local()


def compiled(function: Any) -> Any:
    """A plain loop, compiled on first use.

    To see whether what it has on disk is out of date, Numba looks only at the file of `function`: what it calls must
    stand in the same file.
    """
    made: Any = numba.njit(nogil=True, error_model="numpy")(function)
    made._cache = cache_of(function)
    return made


def worker_function(function: Any) -> Any:
    """`function(job)` compiled for C at once; it must close over `source_digest()`."""
    made: Any = CFunc(function, _JOB, locals={}, options={})
    made._cache = cache_of(function)
    made.compile()
    return made


def source_digest() -> int:
    """A number that changes with the source of the compiled loops.

    To see whether what it has on disk is out of date, Numba looks only at the file of the cached function and at the
    numbers that the function closes over.  With this one among them, a change in any file of the loops counts.
    """
    text = b"".join((Path(__file__).parent / name).read_bytes() for name in COMPILED_FILES)
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little") + 1


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not below `number`."""
    return -(-number // multiple) * multiple


def scratch_address(size_bytes: int) -> int:
    """The address of at least `size_bytes` that this Python thread may use until its next call; a whole vector's."""
    kept: np.ndarray[Any, Any] | None = getattr(_scratch, "buffer", None)
    if kept is None or kept.size < size_bytes + VECTOR_BYTES:
        kept = _scratch.buffer = np.zeros(size_bytes + VECTOR_BYTES, dtype=np.uint8)
    return round_up(int(kept.ctypes.data), VECTOR_BYTES)
