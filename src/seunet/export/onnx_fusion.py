"""Heads as one prediction in an ONNX graph."""

from __future__ import annotations

import numpy as np

from seunet.export.onnx_operators import Graph
from seunet.export.portable import PortableNetwork


def fused(graph: Graph, heads: list[str], network: PortableNetwork, axis: str, result: str) -> str:
    """`portable.fusion_weights` and the sum."""
    if len(heads) == 1:
        return graph.add("Identity", heads[0], name=result)
    if network.fusion == "mean":
        share = graph.constant(np.array(1 / len(heads), dtype=np.float32))
        return graph.add("Mul", graph.sum(heads), share, name=result)
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
    return graph.add("Identity", graph.sum(terms), name=result)


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
