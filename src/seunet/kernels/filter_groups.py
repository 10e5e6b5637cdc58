"""The innermost loops, written as LLVM code: over the taps of a filter, and over the depth of a matrix product.

Sums of several vectors are kept in registers: a load serves all of them, and while one waits for its last multiply-add
the others go on.  LLVM's own choices here (what to unroll, which addresses to keep) are slower, and other ones in each
version: hence by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import binding, ir
from numba.core import cgutils, config, types

from seunet.kernels.jobs import VECTOR_BYTES
from seunet.kernels.simd import Vector, broadcast, emitted, llvm_type, multiply_add, summed

_INTEGER = ir.IntType(types.intp.bitwidth)  # type: ignore[attr-defined]


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


class _Vectors:
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
        apart = _INTEGER(self.type.count) if between is None else between
        place = self._builder.gep(pointer, [self._builder.mul(apart, _INTEGER(number))])
        return self._builder.bitcast(place, self.type.as_pointer())


def _loop(builder: Any, rounds: Any, starts: list[Any], body: Callable[..., list[Any]]) -> list[Any]:
    """The values `starts` after so many `rounds` of `values = body(round, *values)`; rounds are counted from 1."""
    before, head = builder.block, builder.append_basic_block("next")
    inside, end = builder.append_basic_block("round"), builder.append_basic_block("end")
    builder.branch(head)
    builder.position_at_end(head)
    number, *values = (builder.phi(start.type) for start in (_INTEGER(1), *starts))
    builder.cbranch(builder.icmp_signed("<=", number, rounds), inside, end)
    builder.position_at_end(inside)
    later = builder.add(number, _INTEGER(1)), *body(number, *values)
    builder.branch(head)
    for variable, start, following in zip((number, *values), (_INTEGER(1), *starts), later, strict=True):
        variable.add_incoming(start, before)
        variable.add_incoming(following, inside)
    builder.position_at_end(end)
    return list(values)


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
        code = _Vectors(builder, signature.args[1].dtype)
        each = [(first, order) for first in (taps, slopes)[:banks] for order in range(orders)]
        rows = [builder.gep(first, [builder.mul(tap_stride, _INTEGER(order))]) for first, order in each]
        neighbours: _Shifted | _Loaded
        if from_registers:
            around = code.load(builder.gep(source, [_INTEGER(-code.type.count)]), vectors + 2)
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

        totals = _loop(builder, radius, starts, add_taps)[states:]
        for number, (first, order) in enumerate(each):
            to, orders_apart = (slope_target, slope_apart) if first is slopes else (target, apart)
            place = builder.gep(to, [builder.mul(orders_apart, _INTEGER(order))])
            code.store(place, totals[number * vectors : (number + 1) * vectors], target_between)

    return group


class _Loaded:
    """The pairs f(−t), f(t) as loads; the state of the loop are the two places."""

    def __init__(self, builder: Any, code: _Vectors, source: Any, step: Any, between: Any) -> None:
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

    def __init__(self, builder: Any, code: _Vectors, around: Sequence[Any]) -> None:
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


def mix_group(vectors: int) -> Any:
    """A function that computes four rows of a matrix product, `vectors` vectors of each.

    target[to + m·target_stride + c] = Σ_{k ≤ last} matrix[4k + m] · source[at + k·source_stride + c],  m < 4.
    """

    @emitted(
        lambda last, matrix, source, at, source_stride, target, to, target_stride: types.void(
            types.intp, source, source, types.intp, types.intp, source, types.intp, types.intp
        )
    )
    def group(
        builder: Any,
        signature: Any,
        last: Any,
        matrix: Any,
        source: Any,
        at: Any,
        source_stride: Any,
        target: Any,
        to: Any,
        target_stride: Any,
    ) -> None:
        code, many = _Vectors(builder, signature.args[2].dtype), range(OUTPUTS_AT_ONCE)

        def weights(pointer: Any) -> list[Any]:
            return [code.splat(builder.gep(pointer, [_INTEGER(m)])) for m in many]

        def moved(pixels: Any, row: Any) -> list[Any]:
            return [builder.gep(pixels, [source_stride]), builder.gep(row, [_INTEGER(OUTPUTS_AT_ONCE)])]

        def add_row(_k: Any, pixels: Any, row: Any, *totals: Any) -> list[Any]:
            values, sums = code.load(pixels, vectors), iter(totals)
            products = [multiply_add(builder, one, value, next(sums)) for one in weights(row) for value in values]
            return [*moved(pixels, row), *products]

        first = builder.gep(source, [at])
        values = code.load(first, vectors)
        products = [builder.fmul(one, value) for one in weights(matrix) for value in values]
        totals = _loop(builder, last, [*moved(first, matrix), *products], add_row)[2:]
        for m in many:
            place = builder.gep(target, [builder.add(to, builder.mul(target_stride, _INTEGER(m)))])
            code.store(place, totals[m * vectors : (m + 1) * vectors])

    return group


def gram_group(columns: int) -> Any:
    """A function that adds the scalar products of four rows of one matrix with `columns` rows of another.

    target[i·target_stride + j] += Σ_n left[i·left_stride + n] · right[j·right_stride + n],  i < 4, j < columns, n over
    `last` + 1 vectors.
    """

    @emitted(
        lambda last, left, left_stride, right, right_stride, target, target_stride: types.void(
            types.intp, left, types.intp, left, types.intp, left, types.intp
        )
    )
    def group(
        builder: Any,
        signature: Any,
        last: Any,
        left: Any,
        left_stride: Any,
        right: Any,
        right_stride: Any,
        target: Any,
        target_stride: Any,
    ) -> None:
        code = _Vectors(builder, signature.args[1].dtype)

        def rows(first: Any, stride: Any, count: int) -> list[Any]:
            return [builder.gep(first, [builder.mul(stride, _INTEGER(number))]) for number in range(count)]

        lefts, rights = rows(left, left_stride, 4), rows(right, right_stride, columns)

        def vectors(at: Any) -> tuple[list[Any], list[Any]]:
            return tuple([code.load(builder.gep(row, [at]), 1)[0] for row in some] for some in (lefts, rights))  # type: ignore[return-value]

        def add_products(number: Any, *totals: Any) -> list[Any]:
            ys, xs = vectors(builder.mul(number, _INTEGER(code.type.count)))
            sums = iter(totals)
            return [multiply_add(builder, y, x, next(sums)) for y in ys for x in xs]

        ys, xs = vectors(_INTEGER(0))
        totals = iter(_loop(builder, last, [builder.fmul(y, x) for y in ys for x in xs], add_products))
        for row in rows(target, target_stride, 4):
            for j in range(columns):
                place = builder.gep(row, [_INTEGER(j)])
                builder.store(builder.fadd(builder.load(place), summed(builder, next(totals))), place)

    return group
