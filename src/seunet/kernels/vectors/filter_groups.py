"""The innermost loop over the taps of a filter, written as LLVM code (`code.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from seunet.kernels.jobs import VECTOR_BYTES
from seunet.kernels.vectors.code import INTEGER, Vectors, loop
from seunet.kernels.vectors.simd import emitted, multiply_add


def filter_group(orders: int, banks: int, vectors: int, from_registers: bool = False) -> Any:
    """A function that computes the derivatives 0 … orders − 1 of `vectors` vectors, `between` floats from each other.

    Order n of vector v goes to target[n·apart + v·target_between + c]:
    taps[n, 0]·f(0) + Σ_{t ≥ 1} taps[n, t]·(f(−t) ± f(t)),  f(t) = source[v·between + t·step + c],
    with + for even n and − for odd n.  With two banks the same by `slopes`, into `slope_target`, `slope_apart`
    from each other.

    `from_registers`: for neighbours in a row (a step of 1, vectors one after the other, a radius of a vector at most).
    Nearly all of their loads would straddle two cache lines, which takes twice as long; two neighbouring vectors in
    registers are shifted against each other instead.
    """

    @emitted(
        lambda radius, source, *_: types.void(
            *(types.intp, source, types.intp, types.intp, source, source),
            *(types.intp, source, types.intp, source, types.intp, types.intp),
        )
    )
    def group(
        builder: Any,
        signature: Any,
        radius: Any,
        source: Any,
        step: Any,
        between: Any,
        taps: Any,
        slopes: Any,
        tap_stride: Any,
        target: Any,
        apart: Any,
        slope_target: Any,
        slope_apart: Any,
        target_between: Any,
    ) -> None:
        code = Vectors(builder, signature.args[1].dtype)
        each = [(first, order) for first in (taps, slopes)[:banks] for order in range(orders)]
        rows = [builder.gep(first, [builder.mul(tap_stride, INTEGER(order))]) for first, order in each]
        neighbours: _Shifted | _Loaded
        if from_registers:
            around = code.load(builder.gep(source, [INTEGER(-code.type.count)]), vectors + 2)
            centres, neighbours = around[1:-1], _Shifted(builder, code, around)
        else:
            centres, neighbours = code.load(source, vectors, between), _Loaded(builder, code, source, step, between)
        states = len(neighbours.starts)
        starts = list(neighbours.starts)
        for row, (_, order) in zip(rows, each, strict=True):
            starts += [code.zero if order % 2 else builder.fmul(code.splat(row), centre) for centre in centres]

        def add_taps(t: Any, *values: Any) -> list[Any]:
            state, totals = values[:states], iter(values[states:])
            pairs = neighbours.pairs(state, vectors)
            both, difference = [builder.fadd(*pair) for pair in pairs], [builder.fsub(*pair) for pair in pairs]
            later = neighbours.moved(state)
            for row, (_, order) in zip(rows, each, strict=True):
                tap = code.splat(builder.gep(row, [t]))
                later += [multiply_add(builder, tap, one, next(totals)) for one in (difference if order % 2 else both)]
            return later

        totals = loop(builder, radius, starts, add_taps)[states:]
        for number, (first, order) in enumerate(each):
            to, orders_apart = (slope_target, slope_apart) if first is slopes else (target, apart)
            place = builder.gep(to, [builder.mul(orders_apart, INTEGER(order))])
            code.store(place, totals[number * vectors : (number + 1) * vectors], target_between)

    return group


class _Loaded:
    """The pairs f(−t), f(t) as loads; the state of the loop are the two places."""

    def __init__(self, builder: Any, code: Vectors, source: Any, step: Any, between: Any) -> None:
        self._builder, self._code, self._between = builder, code, between
        self._steps = builder.neg(step), step
        self.starts = self.moved((source, source))

    def pairs(self, state: Sequence[Any], vectors: int) -> list[tuple[Any, Any]]:
        before, after = (self._code.load(place, vectors, self._between) for place in state)
        return list(zip(before, after, strict=True))

    def moved(self, state: Sequence[Any]) -> list[Any]:
        return [self._builder.gep(place, [step]) for place, step in zip(state, self._steps, strict=True)]


class _Shifted:
    """The pairs from vectors that lie one after the other; the state are the lanes to take of two neighbours."""

    def __init__(self, builder: Any, code: Vectors, around: Sequence[Any]) -> None:
        self._builder, self._around, lanes = builder, around, code.type.count
        kind = ir.VectorType(ir.IntType(VECTOR_BYTES * 8 // lanes), lanes)
        self._one = ir.Constant(kind, [1] * lanes)
        self.starts = [ir.Constant(kind, [lane + first for lane in range(lanes)]) for first in (lanes - 1, 1)]
        name = f"llvm.x86.avx512.vpermi2var.{'ps' if lanes == 16 else 'pd'}.512"
        of_two = ir.FunctionType(code.type, [code.type, kind, code.type])
        self._lanes_of_two = cgutils.get_or_insert_function(builder.module, of_two, name)  # type: ignore[no-untyped-call]

    def pairs(self, state: Sequence[Any], vectors: int) -> list[tuple[Any, Any]]:
        def taken(first: int, lanes: Any) -> Any:
            return self._builder.call(self._lanes_of_two, [self._around[first], lanes, self._around[first + 1]])

        return [(taken(number, state[0]), taken(number + 1, state[1])) for number in range(vectors)]

    def moved(self, state: Sequence[Any]) -> list[Any]:
        return [self._builder.sub(state[0], self._one), self._builder.add(state[1], self._one)]
