"""A portable network as an ONNX graph, written operator by operator.

torch's exporter would bind the graph to the sizes it saw (how odd sizes are padded, where pooling ends); written by
hand, sizes are read at run time, and every 1-D pass is one depthwise `Conv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from torch import nn

from seunet.errors import InputError
from seunet.export.onnx_operators import Graph
from seunet.export.portable import PortableHead, PortableNetwork
from seunet.export.portable_layers import (
    DenseThenRelu,
    FilteredThenMixed,
    MixedBetween,
    MixedThenFiltered,
    places_of_column,
)
from seunet.extras import needed

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET: Final = 17
OPSETS: Final = (13, 21)
FEW: Final = 8
"""Maps of fewer channels are not in a runtime's blocked layout, and lie side by side at little cost."""
IMAGES, PROBABILITIES, LOGITS = "images", "probabilities", "logits"


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
        maps = _block(graph, maps, block)
    for reducer, block in zip(head.reducers, head.decoder, strict=True):
        skip, rising = skips.pop(), graph.convolution(maps, reducer)  # type: ignore[arg-type]
        if head.pooling != "none":
            rising = _doubled(graph, rising, skip)
        # Side by side, and not a sum of what is made of each: that they have one size is not seen before it runs, and
        # operators are fused with a sum of maps of one size only.
        maps = _block(graph, graph.add("Concat", skip, rising, axis=1), block)
    return graph.convolution(maps, head.head)


def _block(graph: Graph, maps: str, block: nn.Module) -> str:
    for layer in block.children():
        maps = graph.add("Relu", _layer(graph, maps, layer))
    return maps


def _layer(graph: Graph, maps: str, layer: nn.Module) -> str:
    if isinstance(layer, DenseThenRelu):
        return graph.convolution(maps, layer.convolution)
    if isinstance(layer, FilteredThenMixed):
        return _filtered_then_mixed(graph, maps, layer)
    if isinstance(layer, MixedBetween):
        return _mixed_between(graph, maps, layer)
    assert isinstance(layer, MixedThenFiltered)
    return _mixed_then_filtered(graph, maps, layer)


def _filtered_then_mixed(graph: Graph, maps: str, layer: FilteredThenMixed) -> str:
    rows = [graph.convolution(maps, row) for row in layer.rows]  # type: ignore[arg-type]
    jets = [
        graph.convolution(row, column)  # type: ignore[arg-type]
        for i, row in enumerate(rows)
        for column in layer.columns[: layer.orders - i]
    ]
    if layer.mix.in_channels < FEW * len(jets):
        return graph.convolution(graph.add("Concat", *jets, axis=1), layer.mix)
    return _mixed(graph, jets, layer.mix)


def _mixed_between(graph: Graph, maps: str, layer: MixedBetween) -> str:
    rows = [graph.convolution(maps, row) for row in layer.rows]  # type: ignore[arg-type]
    terms = [
        graph.convolution(_mixed(graph, rows[: layer.orders - j], mix), column)  # type: ignore[arg-type]
        for j, (mix, column) in enumerate(zip(layer.mixes, layer.columns, strict=True))
    ]
    return graph.sum(terms)


def _mixed_then_filtered(graph: Graph, maps: str, layer: MixedThenFiltered) -> str:
    weights = np.split(layer.mix.weight.detach().numpy(), layer.orders * (layer.orders + 1) // 2)
    mixed = [graph.filtered(maps, weight) for weight in weights]
    terms = []
    for j, column in enumerate(layer.columns):
        places = places_of_column(layer.orders, j)
        rows = [graph.convolution(mixed[place], layer.rows[i]) for i, place in enumerate(places)]  # type: ignore[arg-type]
        terms.append(graph.convolution(graph.sum(rows), column))  # type: ignore[arg-type]
    return graph.sum(terms)


def _mixed(graph: Graph, maps: list[str], mix: nn.Conv2d) -> str:
    """Sums of 1×1 convolutions, and not one of a concatenation: runtimes keep their own memory layout through a sum."""
    bias = None if mix.bias is None else mix.bias.detach().numpy()
    parts = zip(maps, np.split(mix.weight.detach().numpy(), len(maps), axis=1), strict=True)
    return graph.sum([graph.filtered(one, part, None if k else bias) for k, (one, part) in enumerate(parts)])


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
