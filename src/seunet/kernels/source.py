"""What the compiled code on disk was compiled from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

COMPILED_FILES: Final = (
    "simd.py",
    "filter_loops.py",
    "strip_loops.py",
    "jet_loops.py",
    "pooling_loops.py",
    "batch_norm_loops.py",
)


def source_digest() -> int:
    """A number that changes with the source of the compiled loops.

    To see whether what it has on disk is out of date, Numba looks only at the file of the cached function and at the
    numbers that the function closes over.  With this one among them, a change in any file of the loops counts.
    """
    text = b"".join((Path(__file__).parent / name).read_bytes() for name in COMPILED_FILES)
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little") + 1
