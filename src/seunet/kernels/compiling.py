"""Plain loops, compiled by Numba and kept on disk."""

from __future__ import annotations

from typing import Any

import numba


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
