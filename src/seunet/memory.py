"""How this process gets its memory."""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.system import peak_resident

_MMAP_MAX: Final = -4
_TRIM_THRESHOLD: Final = -1
_NEVER: Final = -1
"""As a size this is the largest there is.  2³¹ − 1 would be two gigabytes, which a step of a wide network exceeds."""


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed for what is asked for next; whether it could be told so.

    Every layer makes maps of tens of megabytes and frees them.  By default such blocks are given back to the system at
    once, and the next ones come as fresh pages that the system must clear, which takes a good part of a training
    step.  The price is that the process stays as large as it ever was, which suits
    work on blocks of one size; in a program of your own it is yours to call.  Only glibc (Linux) has the setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_MMAP_MAX, 0)) and bool(set_option(_TRIM_THRESHOLD, _NEVER))


def give_back_freed_memory() -> None:
    """Let the system have what `keep_freed_memory` kept: between two kinds of work, whose blocks differ in size."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)


def own_pages(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """An array of zeros in pages of its own, which the system has back as soon as nobody holds it.

    With `keep_freed_memory` a block of hundreds of megabytes would leave a hole that smaller ones fill, and the next
    block of its size would lie beside it: the process would grow from tile to tile.
    """
    count = math.prod(shape)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not on Windows
    pages = mmap.mmap(-1, max(1, count * np.dtype(dtype).itemsize), **private)
    return np.frombuffer(pages, dtype=dtype, count=count).reshape(shape)


def peak_bytes() -> int:
    """The most this process ever held."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Linux's own count for this process: `getrusage` begins with what its parent held when it was started.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return peak_resident() * (1 if sys.platform == "darwin" else 1024)
