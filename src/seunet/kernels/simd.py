"""Vectors of 64 bytes inside Numba: loads and stores, arithmetic, comparisons, lanes taken apart and put together.

LLVM's own vectoriser gives up on the vertical pass of a separable filter (it cannot prove that the rows do not
overlap) and then runs many times slower, silently.  Small intrinsics make the vectors explicit instead: the loops in
`*_loops.py` read like scalar code and compile to what they say.  A 64-byte vector is one AVX-512 register, two AVX
or four NEON registers; LLVM splits it where it must.

Memory is addressed by typed pointers (`CPointer`), because an array view would bring bounds and wrap-around
arithmetic into the innermost loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

VECTOR_BYTES = 64


class Vector(types.Type):
    """A Numba type: as many `dtype` as fit 64 bytes."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        self.lanes = VECTOR_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Vector({dtype} x {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, _llvm_type(vector))


def _llvm_type(vector: Vector) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if vector.dtype == types.float32 else ir.DoubleType(), vector.lanes)


def _suffix(vector: Vector) -> str:
    return f"v{vector.lanes}f{vector.dtype.bitwidth}"


def _at(builder: Any, pointer: Any, index: Any, vector: Vector) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), _llvm_type(vector).as_pointer())


def _broadcast(builder: Any, scalar: Any, vector_type: ir.VectorType) -> Any:
    lane = ir.IntType(32)
    undefined = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(lane, 0))
    zeros = ir.Constant(ir.VectorType(lane, vector_type.count), [0] * vector_type.count)
    return builder.shuffle_vector(first, undefined, zeros)


@intrinsic
def float_pointer(typing_context: Any, address: Any, dtype: Any) -> Any:
    """`float_pointer(address, float32)`: the integer `address` as a pointer to floats."""
    pointer = types.CPointer(dtype.dtype)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.intp, dtype), codegen


@intrinsic
def fetch_add(typing_context: Any, counter: Any, amount: Any) -> Any:
    """Atomically add `amount` to the integer that `counter` points to and return what was there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", arguments[0], arguments[1], "monotonic")

    return types.intp(types.CPointer(types.intp), types.intp), codegen


@intrinsic
def load(typing_context: Any, pointer: Any, index: Any) -> Any:
    """The vector that starts at `pointer[index]`; no alignment is assumed."""
    vector = Vector(pointer.dtype)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_at(builder, arguments[0], arguments[1], vector))
        value.align = vector.dtype.bitwidth // 8
        return value

    return vector(pointer, types.intp), codegen


@intrinsic
def store(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Write the vector `value` to `pointer[index]` and on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        done = builder.store(arguments[2], _at(builder, arguments[0], arguments[1], value))
        done.align = value.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(pointer, types.intp, value), codegen


@intrinsic
def store_first(typing_context: Any, pointer: Any, index: Any, value: Any, count: Any) -> Any:
    """Write only the first `count` lanes of `value` to `pointer[index]` and on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector_type, lane = _llvm_type(value), ir.IntType(32)
        lanes = ir.Constant(ir.VectorType(lane, value.lanes), list(range(value.lanes)))
        limit = _broadcast(builder, builder.trunc(arguments[3], lane), lanes.type)
        mask = builder.icmp_signed("<", lanes, limit)
        kind = ir.FunctionType(ir.VoidType(), [vector_type, vector_type.as_pointer(), lane, mask.type])
        masked_store = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.store.{_suffix(value)}.p0")
        where = _at(builder, arguments[0], arguments[1], value)
        builder.call(masked_store, [arguments[2], where, ir.Constant(lane, value.dtype.bitwidth // 8), mask])
        return context.get_dummy_value()

    return types.void(pointer, types.intp, value, types.intp), codegen


@intrinsic
def splat(typing_context: Any, scalar: Any) -> Any:
    """A vector whose lanes all hold `scalar`."""
    vector = Vector(scalar)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _broadcast(builder, arguments[0], _llvm_type(vector))

    return vector(scalar), codegen


@intrinsic
def add(typing_context: Any, left: Any, right: Any) -> Any:
    """left + right, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return left(left, right), codegen


@intrinsic
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
    """left − right, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fsub(*arguments)

    return left(left, right), codegen


@intrinsic
def multiply(typing_context: Any, left: Any, right: Any) -> Any:
    """left · right, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return left(left, right), codegen


@intrinsic
def fused_multiply_add(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    """left · right + addend, lane by lane, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector_type = _llvm_type(left)
        kind = ir.FunctionType(vector_type, [vector_type] * 3)
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.{_suffix(left)}")
        return builder.call(function, arguments)

    return left(left, right, addend), codegen


@intrinsic
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """The larger of the two, lane by lane; a NaN in `left` stays a NaN, as in `torch.relu`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        keep_left = builder.fcmp_unordered(">", arguments[0], arguments[1])
        return builder.select(keep_left, arguments[0], arguments[1])

    return left(left, right), codegen


@intrinsic
def lane_sum(typing_context: Any, vector: Any) -> Any:
    """The sum of all lanes, pairwise in a fixed order."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index, half, value = ir.IntType(32), vector.lanes // 2, arguments[0]
        undefined = ir.Constant(_llvm_type(vector), ir.Undefined)
        while half:
            order = [lane + half if lane < half else 0 for lane in range(vector.lanes)]
            mask = ir.Constant(ir.VectorType(index, vector.lanes), order)
            value = builder.fadd(value, builder.shuffle_vector(value, undefined, mask))
            half //= 2
        return builder.extract_element(value, ir.Constant(index, 0))

    return vector.dtype(vector), codegen


@intrinsic
def lane_count(typing_context: Any, pointer: Any) -> Any:
    """How many of what `pointer` points to fill one vector: a compile-time constant."""
    lanes = Vector(pointer.dtype).lanes

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, lanes)

    return types.intp(pointer), codegen


@intrinsic
def offset(typing_context: Any, pointer: Any, index: Any) -> Any:
    """The pointer to pointer[index]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.intp), codegen


@intrinsic
def where_equal(typing_context: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """`then` where left = right, `otherwise` elsewhere, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("==", arguments[0], arguments[1]), arguments[2], arguments[3])

    return left(left, right, then, otherwise), codegen


def _shuffle_two(builder: Any, first: Any, second: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


@intrinsic
def even_lanes(typing_context: Any, first: Any, second: Any) -> Any:
    """Lanes 0, 2, 4 … of `first` followed by `second`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _shuffle_two(builder, *arguments, list(range(0, 2 * first.lanes, 2)))

    return first(first, second), codegen


@intrinsic
def odd_lanes(typing_context: Any, first: Any, second: Any) -> Any:
    """Lanes 1, 3, 5 … of `first` followed by `second`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _shuffle_two(builder, *arguments, list(range(1, 2 * first.lanes, 2)))

    return first(first, second), codegen


@intrinsic
def interleaved_low(typing_context: Any, first: Any, second: Any) -> Any:
    """first₀ second₀ first₁ second₁ …: the first half of the two woven together."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        order = [lane // 2 + (lane % 2) * first.lanes for lane in range(first.lanes)]
        return _shuffle_two(builder, *arguments, order)

    return first(first, second), codegen


@intrinsic
def interleaved_high(typing_context: Any, first: Any, second: Any) -> Any:
    """The second half of the two woven together."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        order = [(lane + first.lanes) // 2 + (lane % 2) * first.lanes for lane in range(first.lanes)]
        return _shuffle_two(builder, *arguments, order)

    return first(first, second), codegen


@intrinsic
def where_positive(typing_context: Any, value: Any, then: Any, otherwise: Any) -> Any:
    """`then` where value > 0, `otherwise` elsewhere, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(_llvm_type(value), [0.0] * value.lanes)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[1], arguments[2])

    return value(value, then, otherwise), codegen
