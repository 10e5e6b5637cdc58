"""Plain loops, compiled by Numba and kept on disk; what they were compiled from; and room for their buffers."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np

COMPILED_FILES: Final = (
    "simd.py",
    "filter_loops.py",
    "strip_loops.py",
    "jet_loops.py",
    "pooling_loops.py",
    "batch_norm_loops.py",
)

VECTOR_BYTES: Final = 64

_scratch = threading.local()


def compiled(function: Any) -> Any:
    """`function` compiled on first use; kept on disk, or in memory only where no folder can be written.

    To see whether what it has on disk is out of date, Numba looks only at the file of `function`: what it calls must
    stand in the same file.
    """
    try:
        return numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return numba.njit(nogil=True, error_model="numpy")(function)


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
