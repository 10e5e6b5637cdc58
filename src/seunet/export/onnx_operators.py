"""Operators and constants of an ONNX graph, added one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn


class Graph:
    """Nodes and constants in the order in which they are made; names are numbered."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """One operator; the name of its result."""
        from onnx import helper

        result = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], **attributes))
        return result

    def constant(self, values: NDArray[Any]) -> str:
        """A constant; the name of it."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def convolution(self, maps: str, layer: nn.Conv2d) -> str:
        """`Conv` with zero padding."""
        bias = None if layer.bias is None else layer.bias.detach().numpy()
        return self.filtered(maps, layer.weight.detach().numpy(), bias, layer.padding, layer.groups)  # type: ignore[arg-type]

    def filtered(
        self,
        maps: str,
        weight: NDArray[Any],
        bias: NDArray[Any] | None = None,
        padding: tuple[int, int] = (0, 0),
        groups: int = 1,
    ) -> str:
        constants = [self.constant(weight), *([] if bias is None else [self.constant(bias)])]
        return self.add(
            "Conv", maps, *constants, kernel_shape=list(weight.shape[2:]), pads=[*padding] * 2, group=groups
        )

    def sum(self, terms: list[str]) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.add("Add", total, term)
        return total

    def cut(self, maps: str, size: str) -> str:
        """The first `size` (height, width) pixels."""
        return self.add("Slice", maps, self.integers(0, 0), size, self.integers(2, 3))
