"""A portable network as an ONNX graph, written operator by operator.

torch's exporter would bind the graph to the sizes it saw (how odd sizes are padded, where pooling ends); written by
hand, sizes are read at run time, and every 1-D pass is one depthwise `Conv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from torch import nn

from seunet.errors import InputError
from seunet.export.onnx_fusion import fused
from seunet.export.onnx_layers import block_of_layers, joined_block
from seunet.export.onnx_operators import Graph
from seunet.export.onnx_sizes import Size, half_size, halved
from seunet.export.portable import PortableHead, PortableNetwork
from seunet.extras import needed

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET: Final = 17
OPSETS: Final = (13, 21)
IMAGES, PROBABILITIES, LOGITS = "images", "probabilities", "logits"


def onnx_model(
    network: PortableNetwork,
    facts: dict[str, str],
    opset: int = OPSET,
    outputs: tuple[str, ...] = (PROBABILITIES, LOGITS),
    size: Size | None = None,
) -> ModelProto:
    """`images` [B, 3, H, W] in 0 … 1 → `probabilities` [B, classes, H, W], `logits` [B, heads, classes, H, W].

    Args:
        size: the height and width of all images, if they have one: the graph is faster, and for these alone.
    """
    needed("onnx")
    from onnx import TensorProto, checker, helper

    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise InputError(f"opset {opset} is not among those that are written ({OPSETS[0]} to {OPSETS[1]})")
    graph = Graph()
    axis = graph.integers(1)
    logits = [_head(graph, IMAGES, head, size) for head in network.heads]  # type: ignore[arg-type]
    if LOGITS in outputs:
        graph.add("Concat", *(graph.add("Unsqueeze", one, axis) for one in logits), axis=1, name=LOGITS)
    if PROBABILITIES in outputs:
        fused(graph, [graph.add("Softmax", one, axis=1) for one in logits], network, axis, PROBABILITIES)
    classes = network.heads[0].head.out_channels  # type: ignore[union-attr]
    sizes: list[Any] = ["batch", *(("height", "width") if size is None else size)]
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


def _head(graph: Graph, images: str, head: PortableHead, size: Size | None) -> str:
    maps, skips = images, []
    for number, block in enumerate(head.encoder):
        if number:
            skips.append((maps, size))
            maps = halved(graph, maps, head.pooling, size)
            size = size if head.pooling == "none" else half_size(size)
        maps = block_of_layers(graph, maps, block)
    for reducer, block in zip(head.reducers, head.decoder, strict=True):
        skip, larger = skips.pop()
        sizes = None if size is None or larger is None else (larger, size)
        maps = joined_block(graph, (skip, maps), reducer, block, sizes, head.pooling)  # type: ignore[arg-type]
        size = larger
    return graph.convolution(maps, head.head)
