"""Room for the buffers of a team of threads, kept from call to call."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

VECTOR_BYTES: Final = 64

_scratch = threading.local()


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not below `number`."""
    return -(-number // multiple) * multiple


def scratch_address(size_bytes: int) -> int:
    """The address of at least `size_bytes` that this Python thread may use until its next call; a whole vector's."""
    kept: np.ndarray[Any, Any] | None = getattr(_scratch, "buffer", None)
    if kept is None or kept.size < size_bytes + VECTOR_BYTES:
        kept = _scratch.buffer = np.zeros(size_bytes + VECTOR_BYTES, dtype=np.uint8)
    return round_up(int(kept.ctypes.data), VECTOR_BYTES)
