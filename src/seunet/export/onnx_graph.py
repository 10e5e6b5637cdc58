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
from seunet.export.onnx_operators import OPSET, Graph, Shapes
from seunet.export.onnx_sizes import Size, half_size, halved
from seunet.export.portable import PortableHead, PortableNetwork
from seunet.extras import needed

if TYPE_CHECKING:
    from onnx import ModelProto

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
    from onnx import checker, helper

    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise InputError(f"opset {opset} is not among those that are written ({OPSETS[0]} to {OPSETS[1]})")
    graph = Graph()
    axis = graph.integers(1)
    logits = [from_level(graph, IMAGES, head, 0, size) for head in network.heads]  # type: ignore[arg-type]
    if LOGITS in outputs:
        graph.add("Concat", *(graph.add("Unsqueeze", one, axis) for one in logits), axis=1, name=LOGITS)
    if PROBABILITIES in outputs:
        fused(graph, [graph.add("Softmax", one, axis=1) for one in logits], network, axis, PROBABILITIES)
    classes = network.heads[0].head.out_channels  # type: ignore[union-attr]
    sizes: list[Any] = ["batch", *(("height", "width") if size is None else size)]
    channels = network.heads[0].encoder[0][0]  # type: ignore[index]
    read = next(layer for layer in channels.modules() if isinstance(layer, nn.Conv2d)).in_channels  # type: ignore[union-attr]
    middles: Shapes = {IMAGES: [read], PROBABILITIES: [classes], LOGITS: [len(logits), classes]}
    shapes = {name: [sizes[0], *middles[name], *sizes[1:]] for name in (IMAGES, *outputs)}
    model = graph.model({IMAGES: shapes.pop(IMAGES)}, shapes, opset)
    helper.set_model_props(model, facts)
    checker.check_model(model, full_check=True)
    return model


def from_level(graph: Graph, maps: str, head: PortableHead, level: int, size: Size | None) -> str:
    """What a level and all below it make of `maps`: the logits, or what the level above reads of it."""
    maps = block_of_layers(graph, maps, head.encoder[level])
    if level + 1 < len(head.encoder):
        small = size if size is None or head.pooling == "none" else half_size(size)
        low = from_level(graph, halved(graph, maps, head.pooling, size), head, level + 1, small)
        sizes = None if size is None or small is None else (size, small)
        maps = joined_block(graph, (maps, low), joining(head, level), sizes, head.pooling)
    return graph.convolution(maps, leaving(head, level))


def joining(head: PortableHead, level: int) -> nn.Module:
    """The block that reads what is skipped at a level and what comes up to it."""
    return head.decoder[len(head.decoder) - 1 - level]


def leaving(head: PortableHead, level: int) -> nn.Conv2d:
    """What a level ends with: its reduction for the level above, or the logits."""
    return head.reducers[len(head.reducers) - level] if level else head.head  # type: ignore[return-value]
