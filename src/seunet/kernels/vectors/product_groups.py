"""The innermost loops of the two matrix products, written as LLVM code (`code.py`)."""

from __future__ import annotations

from typing import Any

from numba.core import types

from seunet.kernels.vectors.code import INTEGER, OUTPUTS_AT_ONCE, Vectors, loop
from seunet.kernels.vectors.simd import emitted, multiply_add, summed


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
        code, many = Vectors(builder, signature.args[2].dtype), range(OUTPUTS_AT_ONCE)

        def weights(pointer: Any) -> list[Any]:
            return [code.splat(builder.gep(pointer, [INTEGER(m)])) for m in many]

        def moved(pixels: Any, row: Any) -> list[Any]:
            return [builder.gep(pixels, [source_stride]), builder.gep(row, [INTEGER(OUTPUTS_AT_ONCE)])]

        def add_row(_k: Any, pixels: Any, row: Any, *totals: Any) -> list[Any]:
            values, sums = code.load(pixels, vectors), iter(totals)
            products = [multiply_add(builder, one, value, next(sums)) for one in weights(row) for value in values]
            return [*moved(pixels, row), *products]

        first = builder.gep(source, [at])
        values = code.load(first, vectors)
        products = [builder.fmul(one, value) for one in weights(matrix) for value in values]
        totals = loop(builder, last, [*moved(first, matrix), *products], add_row)[2:]
        for m in many:
            place = builder.gep(target, [builder.add(to, builder.mul(target_stride, INTEGER(m)))])
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
        code = Vectors(builder, signature.args[1].dtype)

        def rows(first: Any, stride: Any, count: int) -> list[Any]:
            return [builder.gep(first, [builder.mul(stride, INTEGER(number))]) for number in range(count)]

        lefts, rights = rows(left, left_stride, 4), rows(right, right_stride, columns)

        def vectors(at: Any) -> tuple[list[Any], list[Any]]:
            return tuple([code.load(builder.gep(row, [at]), 1)[0] for row in some] for some in (lefts, rights))  # type: ignore[return-value]

        def add_products(number: Any, *totals: Any) -> list[Any]:
            ys, xs = vectors(builder.mul(number, INTEGER(code.type.count)))
            sums = iter(totals)
            return [multiply_add(builder, y, x, next(sums)) for y in ys for x in xs]

        ys, xs = vectors(INTEGER(0))
        totals = iter(loop(builder, last, [builder.fmul(y, x) for y in ys for x in xs], add_products))
        for row in rows(target, target_stride, 4):
            for j in range(columns):
                place = builder.gep(row, [INTEGER(j)])
                builder.store(builder.fadd(builder.load(place), summed(builder, next(totals))), place)

    return group
