"""Half and double sizes in an ONNX graph, read at run time where they are not known before."""

from __future__ import annotations

import numpy as np

from seunet.export.onnx_operators import Graph

Size = tuple[int, int]
"""Height and width."""


def _size(graph: Graph, maps: str) -> str:
    """(height, width) of a map, at run time."""
    return graph.add("Slice", graph.add("Shape", maps), graph.integers(2), graph.integers(4), graph.integers(0))


def half_size(size: Size) -> Size:
    return max(size[0] // 2, 1), max(size[1] // 2, 1)


def halved(graph: Graph, maps: str, pooling: str, size: Size | None) -> str:
    """Pooling by 2×2, rounded down, never below one pixel."""
    if pooling == "none":
        return maps
    operator = {"max": "MaxPool", "average": "AveragePool"}[pooling]
    if size is not None and min(size) > 1:
        return graph.add(operator, maps, kernel_shape=[2, 2], strides=[2, 2])
    wanted = graph.add("Max", graph.add("Div", _size(graph, maps), graph.integers(2, 2)), graph.integers(1, 1))
    return graph.cut(graph.add(operator, maps, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]), wanted)


def twice(graph: Graph, maps: str) -> str:
    scales = graph.constant(np.array([1, 1, 2, 2], dtype=np.float32))
    return graph.add("Resize", maps, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")


def doubled(graph: Graph, maps: str, skip: str, sizes: tuple[Size, Size] | None) -> str:
    """Twice as large, the last row and column once more where `skip` has one more; sizes: of `skip` and of `maps`."""
    large = twice(graph, maps)
    if sizes is not None:
        more = [wanted - 2 * few for wanted, few in zip(*sizes, strict=True)]
        if min(more) >= 0:
            return graph.add("Pad", large, graph.integers(*[0] * 6, *more), mode="edge") if any(more) else large
    return graph.cut(graph.add("Pad", large, graph.integers(0, 0, 0, 0, 0, 0, 1, 1), mode="edge"), _size(graph, skip))
