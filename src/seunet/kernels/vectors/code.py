"""What the innermost loops are written with: vectors in registers, loops in LLVM, and how many sums a processor keeps.

Sums of several vectors are kept in registers: a load serves all of them, and while one waits for its last multiply-add
the others go on.  LLVM's own choices here (what to unroll, which addresses to keep) are slower, and other ones in each
version: hence by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import binding, ir
from numba.core import config, types

from seunet.kernels.vectors.simd import Vector, broadcast, llvm_type

INTEGER = ir.IntType(types.intp.bitwidth)  # type: ignore[attr-defined]


def _has_wide_registers() -> bool:
    """Whether a vector of 64 bytes is one register, of which there are 32, or two of 16, or four of 32."""
    asked = getattr(config, "CPU_FEATURES", None)
    return "+avx512f" in (asked or binding.get_host_cpu_features().flatten())


WIDE: Final = _has_wide_registers()
MIXED_AT_ONCE: Final = 4 if WIDE else 1
OUTPUTS_AT_ONCE: Final = 4
COLUMNS_AT_ONCE: Final = 4 if WIDE else 2


def filtered_at_once(filters: int) -> int:
    """Vectors that so many filters are given together: as many as registers hold the sums of."""
    return (4 if filters <= 4 else 2) if WIDE else (2 if filters <= 3 else 1)


class Vectors:
    """Writes what is done with vectors that lie one after the other."""

    def __init__(self, builder: Any, dtype: types.Float) -> None:
        self._builder, self._align = builder, dtype.bitwidth // 8
        self.type = llvm_type(Vector(dtype))
        self.zero = ir.Constant(self.type, [0.0] * self.type.count)

    def load(self, pointer: Any, count: int, between: Any = None) -> list[Any]:
        """So many vectors, one after the other or `between` floats from each other."""
        loads = [self._builder.load(self._place(pointer, number, between)) for number in range(count)]
        for one in loads:
            one.align = self._align
        return loads

    def store(self, pointer: Any, vectors: Sequence[Any], between: Any = None) -> None:
        for number, one in enumerate(vectors):
            self._builder.store(one, self._place(pointer, number, between)).align = self._align

    def splat(self, pointer: Any) -> Any:
        """What `pointer` points to, in all lanes."""
        return broadcast(self._builder, self._builder.load(pointer), self.type)

    def _place(self, pointer: Any, number: int, between: Any) -> Any:
        apart = INTEGER(self.type.count) if between is None else between
        place = self._builder.gep(pointer, [self._builder.mul(apart, INTEGER(number))])
        return self._builder.bitcast(place, self.type.as_pointer())


def loop(builder: Any, rounds: Any, starts: list[Any], body: Callable[..., list[Any]]) -> list[Any]:
    """The values `starts` after so many `rounds` of `values = body(round, *values)`; rounds are counted from 1."""
    before, head = builder.block, builder.append_basic_block("next")
    inside, end = builder.append_basic_block("round"), builder.append_basic_block("end")
    builder.branch(head)
    builder.position_at_end(head)
    number, *values = (builder.phi(start.type) for start in (INTEGER(1), *starts))
    builder.cbranch(builder.icmp_signed("<=", number, rounds), inside, end)
    builder.position_at_end(inside)
    later = builder.add(number, INTEGER(1)), *body(number, *values)
    builder.branch(head)
    for variable, start, following in zip((number, *values), (INTEGER(1), *starts), later, strict=True):
        variable.add_incoming(start, before)
        variable.add_incoming(following, inside)
    builder.position_at_end(end)
    return list(values)
