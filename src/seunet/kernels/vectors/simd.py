"""Vectors of 64 bytes inside Numba: what they are, loads and stores; arithmetic is in `arithmetic.py`.

LLVM's own vectoriser gives up on the vertical pass of a separable filter (it cannot prove that the rows do not
overlap) and then runs many times slower, silently.  Small intrinsics make the vectors explicit instead: the loops
in `loops/` read like scalar code and compile to what they say.  A 64-byte vector is one AVX-512 register, two AVX
or four NEON registers; LLVM splits it where it must.

Memory is addressed by typed pointers (`CPointer`), because an array view would bring bounds and wrap-around
arithmetic into the innermost loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from seunet.kernels.jobs import VECTOR_BYTES

_LANE = ir.IntType(32)


class Vector(types.Type):
    """A Numba type: as many `dtype` as fit 64 bytes."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        self.lanes = VECTOR_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Vector({dtype} x {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, llvm_type(vector))


def llvm_type(vector: Vector) -> ir.VectorType:
    """What LLVM calls it."""
    return ir.VectorType(ir.FloatType() if vector.dtype == types.float32 else ir.DoubleType(), vector.lanes)


def emitted(signature_of: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of `emit(builder, signature, *values)`; `signature_of` is given the Numba types of the values.

    An `emit` that returns nothing is one of a function that returns nothing.
    """

    def decorated(emit: Callable[..., Any]) -> Any:
        def definition(typing_context: Any, *given: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                found = emit(builder, signature, *values)
                return context.get_dummy_value() if found is None else found

            return signature_of(*given), codegen

        definition.__name__, definition.__doc__ = emit.__name__, emit.__doc__
        # Numba takes the names of the values from here, behind one for the typing context.
        named = list(inspect.signature(emit).parameters.values())[1:]
        definition.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return intrinsic(definition)

    return decorated


lanewise = emitted(lambda first, *others: first(first, *others))
"""For what is done lane by lane: the result is a vector like the first one."""


def _at(builder: Any, pointer: Any, index: Any, vector: Vector) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), llvm_type(vector).as_pointer())


def broadcast(builder: Any, scalar: Any, vector_type: ir.VectorType) -> Any:
    """A vector whose lanes all hold `scalar`."""
    undefined = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_LANE, 0))
    return shuffled(builder, first, undefined, [0] * vector_type.count)


def shuffled(builder: Any, first: Any, second: Any, order: Iterable[int]) -> Any:
    """The lanes of two vectors, numbered one after the other, in this order."""
    places = list(order)
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_LANE, len(places)), places))


def multiply_add(builder: Any, left: Any, right: Any, addend: Any) -> Any:
    """left · right + addend, rounded once."""
    kind = left.type
    name = f"llvm.fma.v{kind.count}{'f64' if kind.element == ir.DoubleType() else 'f32'}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [left, right, addend])


@emitted(lambda address, dtype: types.CPointer(dtype.dtype)(types.intp, dtype))
def float_pointer(builder: Any, signature: Any, address: Any, _dtype: Any) -> Any:
    """`float_pointer(address, float32)`: the integer `address` as a pointer to floats."""
    return builder.inttoptr(address, llvm_type(Vector(signature.return_type.dtype)).element.as_pointer())


@emitted(lambda counter, amount: types.intp(types.CPointer(types.intp), types.intp))
def fetch_add(builder: Any, _signature: Any, counter: Any, amount: Any) -> Any:
    """Atomically add `amount` to the integer that `counter` points to and return what was there."""
    return builder.atomic_rmw("add", counter, amount, "monotonic")


@emitted(lambda pointer, index: pointer(pointer, types.intp))
def offset(builder: Any, _signature: Any, pointer: Any, index: Any) -> Any:
    """The pointer to pointer[index]."""
    return builder.gep(pointer, [index])


@emitted(lambda pointer, index: Vector(pointer.dtype)(pointer, types.intp))
def load(builder: Any, signature: Any, pointer: Any, index: Any) -> Any:
    """The vector that starts at `pointer[index]`; no alignment is assumed."""
    value = builder.load(_at(builder, pointer, index, signature.return_type))
    value.align = signature.return_type.dtype.bitwidth // 8
    return value


@emitted(lambda pointer, index, value: types.void(pointer, types.intp, value))
def store(builder: Any, signature: Any, pointer: Any, index: Any, value: Any) -> None:
    """Write the vector `value` to `pointer[index]` and on."""
    vector = signature.args[2]
    builder.store(value, _at(builder, pointer, index, vector)).align = vector.dtype.bitwidth // 8


@emitted(lambda pointer, index, value: types.void(pointer, types.intp, value))
def store_past(builder: Any, signature: Any, pointer: Any, index: Any, value: Any) -> None:
    """`store` of a whole cache line, past the caches: nobody reads from memory what is all written anew.

    It must begin with a line (`floats_to_line`); other threads see it after `all_stored`.
    """
    stored = builder.store(value, _at(builder, pointer, index, signature.args[2]))
    stored.align = VECTOR_BYTES
    stored.set_metadata("nontemporal", builder.module.add_metadata([_LANE(1)]))


@emitted(lambda pointer, index: types.intp(pointer, types.intp))
def floats_to_line(builder: Any, signature: Any, pointer: Any, index: Any) -> Any:
    """How many floats of `pointer[index]` and on lie before the next cache line begins."""
    integer = ir.IntType(types.intp.bitwidth)
    back = builder.neg(builder.ptrtoint(builder.gep(pointer, [index]), integer))
    bytes_left = builder.and_(back, integer(VECTOR_BYTES - 1))
    return builder.udiv(bytes_left, integer(signature.args[0].dtype.bitwidth // 8))


@emitted(types.void)
def all_stored(builder: Any, _signature: Any) -> None:
    """Wait until all that this thread has stored is there for the others."""
    builder.fence("seq_cst")


@emitted(lambda pointer, index, value, count: types.void(pointer, types.intp, value, types.intp))
def store_first(builder: Any, signature: Any, pointer: Any, index: Any, value: Any, count: Any) -> None:
    """Write only the first `count` lanes of `value` to `pointer[index]` and on."""
    vector = signature.args[2]
    lanes = ir.Constant(ir.VectorType(_LANE, vector.lanes), list(range(vector.lanes)))
    mask = builder.icmp_signed("<", lanes, broadcast(builder, builder.trunc(count, _LANE), lanes.type))
    where = _at(builder, pointer, index, vector)
    kind = ir.FunctionType(ir.VoidType(), [value.type, where.type, _LANE, mask.type])
    name = f"llvm.masked.store.v{vector.lanes}f{vector.dtype.bitwidth}.p0"
    masked_store = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(masked_store, [value, where, ir.Constant(_LANE, vector.dtype.bitwidth // 8), mask])


@emitted(lambda pointer, index: types.void(pointer, types.intp))
def fetch_ahead(builder: Any, _signature: Any, pointer: Any, index: Any) -> None:
    """Ask for the cache line of `pointer[index]` and go on; whatever the address, nothing happens but this."""
    place = builder.bitcast(builder.gep(pointer, [index]), ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [place.type, _LANE, _LANE, _LANE])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, _LANE(0), _LANE(2), _LANE(1)])


@emitted(lambda scalar: Vector(scalar)(scalar))
def splat(builder: Any, signature: Any, scalar: Any) -> Any:
    """A vector whose lanes all hold `scalar`."""
    return broadcast(builder, scalar, llvm_type(signature.return_type))


@emitted(lambda pointer: types.intp(pointer))
def lane_count(_builder: Any, signature: Any, _pointer: Any) -> Any:
    """How many of what `pointer` points to fill one vector: a compile-time constant."""
    return ir.Constant(ir.IntType(types.intp.bitwidth), Vector(signature.args[0].dtype).lanes)


def summed(builder: Any, value: Any) -> Any:
    """The sum of all lanes of a vector, pairwise in a fixed order."""
    lanes = value.type.count
    half = lanes // 2
    while half:
        order = (lane + half if lane < half else 0 for lane in range(lanes))
        value = builder.fadd(value, shuffled(builder, value, ir.Constant(value.type, ir.Undefined), order))
        half //= 2
    return builder.extract_element(value, ir.Constant(_LANE, 0))


@emitted(lambda vector: vector.dtype(vector))
def lane_sum(builder: Any, _signature: Any, value: Any) -> Any:
    """The sum of all lanes, pairwise in a fixed order."""
    return summed(builder, value)
