"""The one loop over the taps of a filter, written as LLVM code: several vectors and several derivatives in registers.

LLVM's own choice here (what to unroll, which addresses to keep) is slower, and other in each version: hence by hand.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from seunet.kernels.simd import Vector, broadcast, emitted, llvm_type, multiply_add

_INTEGER = ir.IntType(types.intp.bitwidth)  # type: ignore[attr-defined]


class _Vectors:
    """Writes what is done with vectors that lie one after the other."""

    def __init__(self, builder: Any, dtype: types.Float) -> None:
        self._builder, self._align = builder, dtype.bitwidth // 8
        self.type = llvm_type(Vector(dtype))
        self.zero = ir.Constant(self.type, [0.0] * self.type.count)

    def load(self, pointer: Any, count: int) -> list[Any]:
        loads = [self._builder.load(self._place(pointer, number)) for number in range(count)]
        for one in loads:
            one.align = self._align
        return loads

    def store(self, pointer: Any, vectors: list[Any]) -> None:
        for number, one in enumerate(vectors):
            self._builder.store(one, self._place(pointer, number)).align = self._align

    def splat(self, pointer: Any) -> Any:
        """What `pointer` points to, in all lanes."""
        return broadcast(self._builder, self._builder.load(pointer), self.type)

    def _place(self, pointer: Any, number: int) -> Any:
        place = self._builder.gep(pointer, [_INTEGER(number * self.type.count)])
        return self._builder.bitcast(place, self.type.as_pointer())


def filter_group(orders: int, vectors: int) -> Any:
    """A function that computes the derivatives 0 … orders − 1 of `vectors` vectors, one after the other in memory.

    Order n goes to target[to + n·apart + c]:  taps[n, 0]·f(0) + Σ_{t ≥ 1} taps[n, t]·(f(−t) ± f(t)),  f(t) =
    source[at + t·step + c], with + for even n and − for odd n.  A load serves all orders and a tap all vectors, and
    while one sum waits for its last multiply-add the others go on.
    """

    @emitted(
        lambda radius, source, at, step, taps, tap_stride, target, to, apart: types.void(
            types.intp, source, types.intp, types.intp, source, types.intp, source, types.intp, types.intp
        )
    )
    def group(
        builder: Any,
        signature: Any,
        radius: Any,
        source: Any,
        at: Any,
        step: Any,
        taps: Any,
        tap_stride: Any,
        target: Any,
        to: Any,
        apart: Any,
    ) -> None:
        code = _Vectors(builder, signature.args[1].dtype)
        rows = [builder.gep(taps, [builder.mul(tap_stride, _INTEGER(n))]) for n in range(orders)]
        middle, back = builder.gep(source, [at]), builder.neg(step)
        centres = code.load(middle, vectors)
        sums = [
            [code.zero if n % 2 else builder.fmul(code.splat(rows[n]), centre) for centre in centres]
            for n in range(orders)
        ]

        before_loop, loop = builder.block, builder.append_basic_block("taps")
        first_before, first_after = builder.gep(middle, [back]), builder.gep(middle, [step])
        builder.branch(loop)
        builder.position_at_end(loop)
        t, before, after = (builder.phi(kind) for kind in (_INTEGER, middle.type, middle.type))
        totals = [[builder.phi(code.type) for _ in centres] for _ in sums]
        left, right = code.load(before, vectors), code.load(after, vectors)
        both = [builder.fadd(one, other) for one, other in zip(left, right, strict=True)]
        between = [builder.fsub(one, other) for one, other in zip(left, right, strict=True)]
        added = []
        for n in range(orders):
            tap = code.splat(builder.gep(rows[n], [t]))
            pairs = zip(between if n % 2 else both, totals[n], strict=True)
            added.append([multiply_add(builder, tap, values, total) for values, total in pairs])
        following = builder.add(t, _INTEGER(1)), builder.gep(before, [back]), builder.gep(after, [step])
        starts, nexts = (_INTEGER(1), first_before, first_after), following
        carried = [
            *zip((t, before, after), starts, nexts, strict=True),
            *((totals[n][v], sums[n][v], added[n][v]) for n in range(orders) for v in range(vectors)),
        ]
        for variable, start, later in carried:
            variable.add_incoming(start, before_loop)
            variable.add_incoming(later, loop)
        end = builder.append_basic_block("summed")
        builder.cbranch(builder.icmp_signed("<=", following[0], radius), loop, end)

        builder.position_at_end(end)
        for n in range(orders):
            code.store(builder.gep(target, [builder.add(to, builder.mul(apart, _INTEGER(n)))]), added[n])

    return group
