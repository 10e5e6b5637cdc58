"""Bytes that two processes hold: one puts pixels there, the other takes them, at the price of a copy in memory each.

A pipe, or writing and reading the same file, cost four times as much for 2048² pixels.
"""

from __future__ import annotations

import mmap
import os
import tempfile

import numpy as np
from numpy.typing import NDArray


def new_shared_file() -> int:
    """A descriptor of a file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("seunet-pixels")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedBytes:
    """What lies in a file that is mapped into memory."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._bytes: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def first(self, count: int) -> NDArray[np.uint8]:
        """The first `count` bytes, to be read or written; the file grows with the largest count."""
        if count > len(self._bytes):
            if os.fstat(self.file).st_size < count:
                os.ftruncate(self.file, count)
            self._bytes = np.frombuffer(mmap.mmap(self.file, count), dtype=np.uint8)
        return self._bytes[:count]

    def close(self) -> None:
        """Let go of the file; a mapping lives as long as an array on it."""
        self._bytes = np.empty(0, dtype=np.uint8)
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
