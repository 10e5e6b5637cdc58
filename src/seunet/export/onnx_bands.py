"""A head by ONNX Runtime, its large levels in bands of rows that stay in the processor's cache.

A runtime computes operator by operator, and each of them reads and writes whole maps: of large images from memory and
to it.  A block reaches a few rows only: a band that is given so many more on each side has the numbers of the whole.
Between the bands maps lie channels last, so that some of their rows are one piece of memory and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from seunet.export.onnx_graph import from_level, joining, leaving
from seunet.export.onnx_layers import block_of_layers, joined_block
from seunet.export.onnx_operators import Graph
from seunet.export.onnx_sizes import Size, half_size, halved
from seunet.export.portable import PortableHead

if TYPE_CHECKING:
    from onnx import ModelProto

Maps = NDArray[np.float32]
Fill = Callable[[list[Maps], list[Maps]], None]
"""Reads the first and writes the second."""
Ends = tuple[bool, bool]
"""Whether the maps end above and below."""

BAND_BYTES: Final = 4 * 2**20
"""Of a map in a band: a handful of them fit into the cache.  With less, the rows at the edges cost more than is won."""


class Band(NamedTuple):
    """Rows `start` to `stop` of `height`."""

    start: int
    stop: int
    height: int

    def wider(self, rows: int) -> Band:
        return Band(max(self.start - rows, 0), min(self.stop + rows, self.height), self.height)

    @property
    def kind(self) -> tuple[int, Ends]:
        return self.stop - self.start, (self.start == 0, self.stop == self.height)

    def of(self, maps: Maps) -> Maps:
        return maps[:, self.start : self.stop]

    def half_of(self, maps: Maps) -> Maps:
        return maps[:, self.start // 2 : self.stop // 2]


def bands(height: int, rows: int) -> list[Band]:
    """Bands of about `rows`, which begin at even rows."""
    count = max(round(height / rows), 1)
    starts = [height * number // count // 2 * 2 for number in range(count)]
    return [Band(*pair, height) for pair in zip(starts, [*starts[1:], height], strict=True)]


def level_in_bands(
    head: PortableHead, number: int, size: Size, start: Callable[[ModelProto], Fill], band_bytes: int = BAND_BYTES
) -> Fill:
    """A session for each kind of part: maps [1, H, W, C] (at the first level images [1, C, H, W]) → [1, H, W, C].

    Args:
        number: of the level; with all below it.
        start: makes a session of a graph.
    """
    level = _Level(head, number, size)
    parts = level.bands(band_bytes)
    if len(parts) == 1:
        return start(level.at_once())
    below = level_in_bands(head, number + 1, level.small, start, band_bytes)
    descending = cache(lambda rows, ends: start(level.descending(rows, ends)))
    rising = cache(lambda rows, ends: start(level.rising(rows, ends)))

    def fill(given: list[Maps], results: list[Maps]) -> None:
        (maps,), (found,) = given, results
        skip, pooled, low = (np.empty((1, *of, level.channels), np.float32) for of in (size, level.small, level.small))
        for band in parts:
            seen = band.wider(level.reach_down)
            rows = seen.of(maps) if number else np.ascontiguousarray(maps[:, :, seen.start : seen.stop])
            descending(*seen.kind)([rows], [band.of(skip), band.half_of(pooled)])
        below([pooled], [low])
        for band in parts:
            seen, written = band.wider(level.margin), band.wider(level.margin - level.reach_up)
            # What it writes above its own rows belongs to the band before; below, the next one writes over it.
            before = found[:, written.start : band.start].copy()
            rising(*seen.kind)([seen.of(skip), seen.half_of(low)], [written.of(found)])
            found[:, written.start : band.start] = before

    return fill


@dataclass(frozen=True)
class _Level:
    head: PortableHead
    number: int
    size: Size

    @property
    def block(self) -> nn.Module:
        return self.head.encoder[self.number]

    @property
    def small(self) -> Size:
        return half_size(self.size)

    @property
    def channels(self) -> int:
        """Of what is skipped, of what is pooled from it and of what comes up."""
        return _convolutions(self.block)[-1].out_channels

    @property
    def reach_down(self) -> int:
        return _reach(self.block)

    @property
    def reach_up(self) -> int:
        return _reach(joining(self.head, self.number))

    @property
    def margin(self) -> int:
        """Rows beyond its own that a band reads on the way up: an even number.

        One at least more than are reached: what comes up is wrong in the outermost, where doubling sees no next one.
        """
        return self.reach_up + 2 - self.reach_up % 2

    def bands(self, band_bytes: int) -> list[Band]:
        height, width = self.size
        if self.number + 1 == len(self.head.encoder) or self.head.pooling == "none":
            return bands(height, height)
        return bands(height, max(band_bytes // (4 * self.channels * width), 4 * self.margin))

    def at_once(self) -> ModelProto:
        graph = Graph()
        maps = from_level(graph, self._read(graph), self.head, self.number, self.size)
        return graph.model({"maps": self._shape(self.size[0])}, self._given(graph, maps, self.size[0]))

    def descending(self, rows: int, ends: Ends) -> ModelProto:
        """What is skipped of a band, and what is pooled."""
        graph, width = Graph(*ends), self.size[1]
        left = rows - self.reach_down * (2 - sum(ends))
        maps = block_of_layers(graph, self._read(graph), self.block)
        pooled = halved(graph, maps, self.head.pooling, (left, width))
        shapes = [1, left, width, self.channels], [1, left // 2, self.small[1], self.channels]
        found = (_channels_last(graph, one) for one in (maps, pooled))
        return graph.model({"maps": self._shape(rows)}, dict(zip(found, shapes, strict=True)))

    def rising(self, rows: int, ends: Ends) -> ModelProto:
        graph, sizes = Graph(*ends), ((rows, self.size[1]), (rows // 2, self.small[1]))
        maps = _channels_first(graph, "skip"), _channels_first(graph, "low")
        joined = joined_block(graph, maps, joining(self.head, self.number), sizes, self.head.pooling)
        end = graph.convolution(joined, leaving(self.head, self.number))
        shapes = ([1, *size, self.channels] for size in sizes)
        left = rows - self.reach_up * (2 - sum(ends))
        return graph.model(dict(zip(("skip", "low"), shapes, strict=True)), self._given(graph, end, left))

    def _read(self, graph: Graph) -> str:
        return _channels_first(graph, "maps") if self.number else "maps"

    def _shape(self, rows: int) -> list[int]:
        channels, width = _convolutions(self.block)[0].in_channels, self.size[1]
        return [1, rows, width, channels] if self.number else [1, channels, rows, width]

    def _given(self, graph: Graph, maps: str, rows: int) -> dict[str, list[int]]:
        return {_channels_last(graph, maps): [1, rows, self.size[1], leaving(self.head, self.number).out_channels]}


def _channels_first(graph: Graph, name: str) -> str:
    """The runtime reads channels last into its own layout at once if one operator alone reads them: here, a copy."""
    return graph.add("MaxPool", graph.add("Transpose", name, perm=[0, 3, 1, 2]), kernel_shape=[1, 1])


def _channels_last(graph: Graph, name: str) -> str:
    return graph.add("Transpose", name, perm=[0, 2, 3, 1])


def _reach(block: nn.Module) -> int:
    """How many rows beyond its own a pixel depends on."""
    return sum(max(int(one.padding[0]) for one in _convolutions(layer)) for layer in block.children())


def _convolutions(block: nn.Module) -> list[nn.Conv2d]:
    return [one for one in block.modules() if isinstance(one, nn.Conv2d)]
