"""How this process gets its memory."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_MMAP_MAX: Final = -4
_TRIM_THRESHOLD: Final = -1
_NEVER: Final = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed for what is asked for next; whether it could be told so.

    Every layer makes maps of tens of megabytes and frees them.  By default such blocks are given back to the system at
    once, and the next ones come as fresh pages that the system must clear, which takes a good part of a training
    step.  The price is that the process stays as large as it ever was, which suits a command that ends
    when its work is done; in a program of your own it is yours to call.  Only glibc (Linux) has the setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_MMAP_MAX, 0)) and bool(set_option(_TRIM_THRESHOLD, _NEVER))
