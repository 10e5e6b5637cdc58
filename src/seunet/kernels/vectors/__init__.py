"""Vectors of 64 bytes inside Numba (`simd.py`, `arithmetic.py`) and the innermost loops, written as LLVM code.

May import: `jobs.py` alone.  Begin with `simd.py`.
"""

from typing import TYPE_CHECKING

from seunet.doors import door

if TYPE_CHECKING:
    from seunet.kernels.vectors.filter_groups import filter_group
    from seunet.kernels.vectors.product_groups import gram_group, mix_group
else:
    __getattr__, __dir__ = door(__name__)
