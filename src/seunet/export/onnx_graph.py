"""A portable network as an ONNX graph, written operator by operator.

torch's exporter would bind the graph to the sizes it saw (how odd sizes are padded, where pooling ends); written by
hand, sizes are read at run time, and every 1-D pass is one depthwise `Conv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from seunet.errors import InputError
from seunet.export.portable import (
    DenseThenRelu,
    FilteredThenMixed,
    MixedThenFiltered,
    PortableHead,
    PortableNetwork,
)
from seunet.extras import needed

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET: Final = 17
OPSETS: Final = (13, 21)
IMAGES, PROBABILITIES, LOGITS = "images", "probabilities", "logits"


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


def onnx_model(
    network: PortableNetwork,
    facts: dict[str, str],
    opset: int = OPSET,
    outputs: tuple[str, ...] = (PROBABILITIES, LOGITS),
) -> ModelProto:
    """`images` [B, 3, H, W] in 0 … 1 → `probabilities` [B, classes, H, W], `logits` [B, heads, classes, H, W]."""
    needed("onnx")
    from onnx import TensorProto, checker, helper

    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise InputError(f"opset {opset} is not among those that are written ({OPSETS[0]} to {OPSETS[1]})")
    graph = Graph()
    axis = graph.integers(1)
    logits = [_head(graph, IMAGES, head) for head in network.heads]  # type: ignore[arg-type]
    if LOGITS in outputs:
        graph.add("Concat", *(graph.add("Unsqueeze", one, axis) for one in logits), axis=1, name=LOGITS)
    if PROBABILITIES in outputs:
        _fused(graph, [graph.add("Softmax", one, axis=1) for one in logits], network, axis)
    classes = network.heads[0].head.out_channels  # type: ignore[union-attr]
    sizes = ["batch", "height", "width"]
    channels = network.heads[0].encoder[0][0]  # type: ignore[index]
    read = next(layer for layer in channels.modules() if isinstance(layer, nn.Conv2d)).in_channels  # type: ignore[union-attr]
    middles: dict[str, list[Any]] = {IMAGES: [read], PROBABILITIES: [classes], LOGITS: [len(logits), classes]}
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [sizes[0], *middles[name], *sizes[1:]])
        for name in (IMAGES, *outputs)
    ]
    made = helper.make_graph(graph.nodes, "seunet", values[:1], values[1:], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], producer_name="seunet")
    # The oldest form that holds it, so that older runtimes read it too.
    model.ir_version = 8 if opset <= 17 else 10
    helper.set_model_props(model, facts)
    checker.check_model(model, full_check=True)
    return model


def _head(graph: Graph, images: str, head: PortableHead) -> str:
    maps, skips = images, []
    for number, block in enumerate(head.encoder):
        if number:
            skips.append(maps)
            maps = _halved(graph, maps, head.pooling)
        maps = _block(graph, [maps], block)
    for reducer, block in zip(head.reducers, head.decoder, strict=True):
        skip, rising = skips.pop(), graph.convolution(maps, reducer)  # type: ignore[arg-type]
        if head.pooling != "none":
            rising = _doubled(graph, rising, skip)
        maps = _block(graph, [skip, rising], block)
    return graph.convolution(maps, head.head)


def _block(graph: Graph, maps: list[str], block: nn.Module) -> str:
    for layer in block.children():
        maps = [graph.add("Relu", _layer(graph, maps, layer))]
    return maps[0]


def _layer(graph: Graph, maps: list[str], layer: nn.Module) -> str:
    """One layer of what lies side by side in `maps`.

    Sums of 1×1 convolutions, and not one of a concatenation: runtimes keep their own memory layout through a sum.
    """
    if isinstance(layer, DenseThenRelu):
        together = maps[0] if len(maps) == 1 else graph.add("Concat", *maps, axis=1)
        return graph.convolution(together, layer.convolution)
    assert isinstance(layer, FilteredThenMixed | MixedThenFiltered)
    weight = layer.mix.weight.detach().numpy()
    if isinstance(layer, FilteredThenMixed):
        together = maps[0] if len(maps) == 1 else graph.add("Concat", *maps, axis=1)
        rows = [graph.convolution(together, row) for row in layer.rows]  # type: ignore[arg-type]
        jets = [
            graph.convolution(row, column)  # type: ignore[arg-type]
            for i, row in enumerate(rows)
            for column in layer.columns[: layer.orders - i]
        ]
        biases = [layer.mix.bias.detach().numpy(), *[None] * (len(jets) - 1)]  # type: ignore[union-attr]
        parts = zip(jets, np.split(weight, len(jets), axis=1), biases, strict=True)
        return graph.sum([graph.filtered(jet, part, bias) for jet, part, bias in parts])
    orders = layer.orders
    mixed = [
        graph.sum(
            [graph.filtered(one, piece) for one, piece in zip(maps, np.split(part, len(maps), axis=1), strict=True)]
        )
        for part in np.split(weight, orders * (orders + 1) // 2)
    ]
    starts = [sum(orders - k for k in range(i)) for i in range(orders)]
    terms = [
        graph.convolution(
            graph.sum([graph.convolution(mixed[starts[i] + j], layer.rows[i]) for i in range(orders - j)]),  # type: ignore[arg-type]
            layer.columns[j],  # type: ignore[arg-type]
        )
        for j in range(orders)
    ]
    return graph.sum(terms)


def _size(graph: Graph, maps: str) -> str:
    """(height, width) of a map, at run time."""
    return graph.add("Slice", graph.add("Shape", maps), graph.integers(2), graph.integers(4), graph.integers(0))


def _halved(graph: Graph, maps: str, pooling: str) -> str:
    if pooling == "none":
        return maps
    wanted = graph.add("Max", graph.add("Div", _size(graph, maps), graph.integers(2, 2)), graph.integers(1, 1))
    operator = {"max": "MaxPool", "average": "AveragePool"}[pooling]
    return graph.cut(graph.add(operator, maps, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]), wanted)


def _doubled(graph: Graph, maps: str, skip: str) -> str:
    scales = graph.constant(np.array([1, 1, 2, 2], dtype=np.float32))
    large = graph.add("Resize", maps, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    padded = graph.add("Pad", large, graph.integers(0, 0, 0, 0, 0, 0, 1, 1), mode="edge")
    return graph.cut(padded, _size(graph, skip))


def _fused(graph: Graph, heads: list[str], network: PortableNetwork, axis: str) -> str:
    """`portable.fusion_weights` and the sum."""
    if len(heads) == 1:
        return graph.add("Identity", heads[0], name=PROBABILITIES)
    if network.fusion == "mean":
        share = graph.constant(np.array(1 / len(heads), dtype=np.float32))
        return graph.add("Mul", graph.sum(heads), share, name=PROBABILITIES)
    sure = graph.add("Concat", *(_sure(graph, head, network) for head in heads), axis=1)
    if network.fusion == "p_ens":
        weights = graph.add("Softmax", sure, axis=1)
    else:
        best = graph.add("ArgMax", sure, axis=1, keepdims=1)
        numbers = graph.constant(np.arange(len(heads), dtype=np.int64)[None, :, None, None])
        weights = graph.add("Cast", graph.add("Equal", best, numbers), to=1)
    terms = []
    for number, head in enumerate(heads):
        weight = graph.add("Slice", weights, graph.integers(number), graph.integers(number + 1), axis)
        terms.append(graph.add("Mul", head, weight))
    return graph.add("Identity", graph.sum(terms), name=PROBABILITIES)


def _sure(graph: Graph, head: str, network: PortableNetwork) -> str:
    """p_max − p_second, [B, 1, H, W]."""
    if network.heads[0].head.out_channels == 1:  # type: ignore[union-attr]
        return head
    from onnx import helper

    name = f"topk_{len(graph.nodes)}"
    graph.nodes.append(helper.make_node("TopK", [head, graph.integers(2)], [name, f"{name}_at"], axis=1))
    first, second = (
        graph.add("Slice", name, graph.integers(number), graph.integers(number + 1), graph.integers(1))
        for number in range(2)
    )
    return graph.add("Sub", first, second)
