"""Arithmetic and comparisons lane by lane; lanes taken apart and put together."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from seunet.kernels.vectors.simd import lanewise, multiply_add, shuffled


@lanewise
def add(builder: Any, _signature: Any, left: Any, right: Any) -> Any:
    """left + right, lane by lane."""
    return builder.fadd(left, right)


@lanewise
def subtract(builder: Any, _signature: Any, left: Any, right: Any) -> Any:
    """left − right, lane by lane."""
    return builder.fsub(left, right)


@lanewise
def multiply(builder: Any, _signature: Any, left: Any, right: Any) -> Any:
    """left · right, lane by lane."""
    return builder.fmul(left, right)


@lanewise
def fused_multiply_add(builder: Any, _signature: Any, left: Any, right: Any, addend: Any) -> Any:
    """left · right + addend, lane by lane, rounded once."""
    return multiply_add(builder, left, right, addend)


@lanewise
def maximum(builder: Any, _signature: Any, left: Any, right: Any) -> Any:
    """The larger of the two, lane by lane; a NaN in `left` stays a NaN, as in `torch.relu`."""
    return builder.select(builder.fcmp_unordered(">", left, right), left, right)


@lanewise
def where_equal(builder: Any, _signature: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """`then` where left = right, `otherwise` elsewhere, lane by lane."""
    return builder.select(builder.fcmp_ordered("==", left, right), then, otherwise)


@lanewise
def where_positive(builder: Any, _signature: Any, value: Any, then: Any, otherwise: Any) -> Any:
    """`then` where value > 0, `otherwise` elsewhere, lane by lane."""
    zero = ir.Constant(value.type, [0.0] * value.type.count)
    return builder.select(builder.fcmp_ordered(">", value, zero), then, otherwise)


@lanewise
def even_lanes(builder: Any, _signature: Any, first: Any, second: Any) -> Any:
    """Lanes 0, 2, 4 … of `first` followed by `second`."""
    return shuffled(builder, first, second, range(0, 2 * first.type.count, 2))


@lanewise
def odd_lanes(builder: Any, _signature: Any, first: Any, second: Any) -> Any:
    """Lanes 1, 3, 5 … of `first` followed by `second`."""
    return shuffled(builder, first, second, range(1, 2 * first.type.count, 2))


@lanewise
def interleaved_low(builder: Any, _signature: Any, first: Any, second: Any) -> Any:
    """first₀ second₀ first₁ second₁ …: the first half of the two woven together."""
    lanes = first.type.count
    return shuffled(builder, first, second, (lane // 2 + lane % 2 * lanes for lane in range(lanes)))


@lanewise
def interleaved_high(builder: Any, _signature: Any, first: Any, second: Any) -> Any:
    """The second half of the two woven together."""
    lanes = first.type.count
    return shuffled(builder, first, second, ((lane + lanes) // 2 + lane % 2 * lanes for lane in range(lanes)))
