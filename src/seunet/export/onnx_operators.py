"""Operators and constants of an ONNX graph, added one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import nn

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET: Final = 17

Shapes = dict[str, list[Any]]
"""Of each name, a number or a word for each axis."""


class Graph:
    """Nodes and constants in the order in which they are made; names are numbered."""

    def __init__(self, above: bool = True, below: bool = True) -> None:
        """`above`, `below`: whether maps end there, and filters read zeros; else they read what they are given."""
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.ends = above, below

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
        (rows, columns), (above, below) = padding, self.ends
        pads = [rows * above, columns, rows * below, columns]
        return self.add("Conv", maps, *constants, kernel_shape=list(weight.shape[2:]), pads=pads, group=groups)

    def sum(self, terms: list[str]) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.add("Add", total, term)
        return total

    def cut(self, maps: str, size: str) -> str:
        """The first `size` (height, width) pixels."""
        return self.add("Slice", maps, self.integers(0, 0), size, self.integers(2, 3))

    def model(self, inputs: Shapes, outputs: Shapes, opset: int = OPSET) -> ModelProto:
        """All of it, with the shapes of what it reads and of what it gives back."""
        from onnx import TensorProto, helper

        given, found = (
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
            for shapes in (inputs, outputs)
        )
        made = helper.make_model(
            helper.make_graph(self.nodes, "seunet", given, found, self.constants),
            opset_imports=[helper.make_opsetid("", opset)],
            producer_name="seunet",
        )
        # The oldest form that holds it, so that older runtimes read it too.
        made.ir_version = 8 if opset <= 17 else 10
        return made
