"""The layers of a portable network as ONNX operators: a layer, a block of them, and the one where two maps meet."""

from __future__ import annotations

from typing import Final

import numpy as np
from torch import nn

from seunet.export.onnx_operators import Graph
from seunet.export.onnx_sizes import Size, doubled, twice
from seunet.export.portable_layers import (
    DenseThenRelu,
    FilteredThenMixed,
    MixedBetween,
    MixedThenFiltered,
    places_of_column,
)

FEW: Final = 8
"""Maps of fewer channels are not in a runtime's blocked layout."""

FEW_TO_MIX: Final = 16
"""Maps of so many channels are doubled, then mixed."""


def block_of_layers(graph: Graph, maps: str, block: nn.Module) -> str:
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
    if layer.rows[0].in_channels < FEW:  # type: ignore[operator]
        return _mixed_in_columns(graph, maps, layer)
    columns = [graph.convolution(maps, column) for column in layer.columns]  # type: ignore[arg-type]
    jets = [
        graph.convolution(column, row)  # type: ignore[arg-type]
        for i, row in enumerate(layer.rows)
        for column in columns[: layer.orders - i]
    ]
    return _mixed(graph, jets, layer.mix)


def _mixed_in_columns(graph: Graph, maps: str, layer: FilteredThenMixed) -> str:
    """Few channels are mixed by the filters along columns themselves, which so end in the runtime's own layout."""
    basis = iter(np.split(layer.mix.weight.detach().numpy(), layer.orders * (layer.orders + 1) // 2, axis=1))
    columns = [column.weight.detach().numpy()[:1] for column in layer.columns]  # type: ignore[operator]
    bias, terms = layer.mix.bias.detach().numpy(), []  # type: ignore[union-attr]
    for i, row in enumerate(layer.rows):
        weight = sum(next(basis) * column for column in columns[: layer.orders - i])
        mixed = graph.filtered(maps, weight, None, layer.columns[0].padding)  # type: ignore[arg-type]
        taps = np.repeat(row.weight.detach().numpy()[:1], len(bias), axis=0)  # type: ignore[operator]
        terms.append(graph.filtered(mixed, taps, None if i else bias, row.padding, len(bias)))  # type: ignore[arg-type]
    return graph.sum(terms)


def _mixed_between(graph: Graph, maps: str, layer: MixedBetween) -> str:
    columns = [graph.convolution(maps, column) for column in layer.columns]  # type: ignore[arg-type]
    terms = [
        graph.convolution(_mixed(graph, columns[: layer.orders - i], mix), row)  # type: ignore[arg-type]
        for i, (mix, row) in enumerate(zip(layer.mixes, layer.rows, strict=True))
    ]
    return graph.sum(terms)


def _mixed_then_filtered(graph: Graph, maps: str, layer: MixedThenFiltered) -> str:
    weights = np.split(layer.mix.weight.detach().numpy(), layer.basis)
    return _filtered(graph, [graph.filtered(maps, weight) for weight in weights], layer)


def _filtered(graph: Graph, mixed: list[str], layer: MixedThenFiltered) -> str:
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


def joined_block(
    graph: Graph, maps: tuple[str, str], block: nn.Module, sizes: tuple[Size, Size] | None, pooling: str
) -> str:
    """The block that reads what is skipped and what comes up, with the sizes of both where they are known."""
    skip, low = maps
    first, second = block.children()
    if sizes is not None and isinstance(first, MixedThenFiltered):
        both = graph.add("Relu", _filtered(graph, _mixed_apart(graph, maps, first, sizes, pooling), first))
        return graph.add("Relu", _layer(graph, both, second))
    rising = low if pooling == "none" else doubled(graph, low, skip, sizes)
    # Side by side, and not a sum of what is made of each: that they have one size is not seen before it runs, and
    # operators are fused with a sum of maps of one size only.
    return block_of_layers(graph, graph.add("Concat", skip, rising, axis=1), block)


def _mixed_apart(
    graph: Graph, maps: tuple[str, str], layer: MixedThenFiltered, sizes: tuple[Size, Size], pooling: str
) -> list[str]:
    """What is skipped and what comes up, mixed each for itself and added, for each place of the mixing.

    Mixing commutes with doubling: many channels are mixed while they are small.  Of few it takes less time than
    doubling.
    """
    (skip, low), (large, small) = maps, sizes
    halves = np.split(layer.mix.weight.detach().numpy(), 2, axis=1)
    of_skip, of_rising = (np.split(half, layer.basis) for half in halves)
    if pooling != "none" and layer.outputs > FEW_TO_MIX and large == (2 * small[0], 2 * small[1]):
        rising = [twice(graph, graph.filtered(low, weight)) for weight in of_rising]
    else:
        whole = low if pooling == "none" else doubled(graph, low, skip, sizes)
        rising = [graph.filtered(whole, weight) for weight in of_rising]
    skipped = [graph.filtered(skip, weight) for weight in of_skip]
    return [graph.add("Add", *pair) for pair in zip(skipped, rising, strict=True)]
