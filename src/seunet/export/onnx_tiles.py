"""A head by ONNX Runtime, its large levels in tiles that stay in the processor's cache.

A runtime computes operator by operator, and each of them reads and writes whole maps: of large images from memory and
to it.  A block reaches a few pixels only: a tile that is given so many more on each side has the numbers of the whole.
Tiles are tall and narrow: a filter along columns finds the rows it reads in the first cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from seunet.export.onnx_graph import from_level, joining, leaving
from seunet.export.onnx_layers import block_of_layers, joined_block
from seunet.export.onnx_operators import Ends, Graph
from seunet.export.onnx_sizes import Size, half_size, halved
from seunet.export.portable import PortableHead

if TYPE_CHECKING:
    from onnx import ModelProto

Maps = NDArray[np.float32]
Fill = Callable[[list[Maps], list[Maps]], None]
"""Reads the first and writes the second."""

TILE_COLUMNS: Final = 64
"""Seven rows of so many pixels of 16 channels fit into the first cache."""

TILE_BYTES: Final = 2 * 2**20
"""Of a map in a tile: a handful of them fit into the cache.  With less, the edges cost more than is won."""


class Band(NamedTuple):
    """Rows, or columns, `start` to `stop` of `whole`."""

    start: int
    stop: int
    whole: int

    def wider(self, pixels: int) -> Band:
        return Band(max(self.start - pixels, 0), min(self.stop + pixels, self.whole), self.whole)

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def ends(self) -> Ends:
        return self.start == 0, self.stop == self.whole

    @property
    def half(self) -> Band:
        return Band(self.start // 2, max(self.stop // 2, 1), max(self.whole // 2, 1))


def bands(whole: int, size: int) -> list[Band]:
    """Bands of about `size`, which begin at even numbers."""
    count = max(round(whole / size), 1)
    starts = [whole * number // count // 2 * 2 for number in range(count)]
    return [Band(*pair, whole) for pair in zip(starts, [*starts[1:], whole], strict=True)]


class Tile(NamedTuple):
    rows: Band
    columns: Band

    def wider(self, pixels: int) -> Tile:
        return Tile(self.rows.wider(pixels), self.columns.wider(pixels))

    @property
    def half(self) -> Tile:
        return Tile(self.rows.half, self.columns.half)

    @property
    def kind(self) -> tuple[Size, tuple[Ends, Ends]]:
        """What its graph depends on."""
        return (self.rows.size, self.columns.size), (self.rows.ends, self.columns.ends)

    def of(self, maps: Maps, before: tuple[int, int] = (0, 0)) -> Maps:
        """Its pixels of maps [1, H, W, C] that begin at row and column `before`."""
        rows, columns = (slice(one.start - first, one.stop - first) for one, first in zip(self, before, strict=True))
        return maps[:, rows, columns]


def level_in_tiles(
    head: PortableHead, number: int, size: Size, start: Callable[[ModelProto], Fill], tile_bytes: int = TILE_BYTES
) -> Fill:
    """A session for each kind of tile: maps [1, H, W, C] (at the first level images [1, C, H, W]) → [1, H, W, C].

    Args:
        number: of the level; with all below it.
        start: makes a session of a graph.
    """
    level = _Level(head, number, size)
    tiles = level.tiles(tile_bytes)
    if len(tiles) == 1:
        return partial(_copied, start(level.at_once()))
    below = level_in_tiles(head, number + 1, level.small, start, tile_bytes)
    descending = cache(lambda size, ends: start(level.descending(size, ends)))
    rising = cache(lambda size, ends: start(level.rising(size, ends)))
    # Kept from image to image: to get so much memory anew costs more than all copies.  What comes up from below takes
    # the place of what was pooled, which has been read by then.
    skip, small = (np.empty((1, *one, level.channels), np.float32) for one in (size, level.small))

    def fill(given: list[Maps], results: list[Maps]) -> None:
        (maps,), (found,) = given, results
        for tile in tiles:
            seen = tile.wider(level.reach_down)
            above = seen.of(maps) if number else np.moveaxis(seen.of(np.moveaxis(maps, 1, -1)), -1, 1)
            _copied(descending(*seen.kind), [above], [tile.of(skip), tile.half.of(small)])
        below([small], [small])
        for tile in tiles:
            seen = tile.wider(level.margin)
            rows, columns = tile.wider(level.margin - level.reach_up)
            wide = np.empty((1, rows.size, columns.size, found.shape[-1]), np.float32)
            read = [np.ascontiguousarray(one) for one in (seen.of(skip), seen.half.of(small))]
            rising(*seen.kind)(read, [wide])
            tile.of(found)[...] = tile.of(wide, (rows.start, columns.start))

    return fill


def _copied(fill: Fill, given: list[Maps], found: list[Maps]) -> None:
    """Sessions read and write whole pieces of memory; what is read may lie where is written, too."""
    written = [np.empty(one.shape, np.float32) for one in found]
    fill([np.ascontiguousarray(one) for one in given], written)
    for place, one in zip(found, written, strict=True):
        place[...] = one


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
        """Pixels beyond its own that a tile reads on the way up: an even number.

        One at least more than are reached: what comes up is wrong in the outermost, where doubling sees no next one.
        """
        return self.reach_up + 2 - self.reach_up % 2

    def tiles(self, tile_bytes: int) -> list[Tile]:
        height, width = self.size
        uncut = self.number + 1 == len(self.head.encoder) or self.head.pooling == "none"
        if uncut or 4 * self.channels * height * width <= 2 * tile_bytes:
            return [Tile(Band(0, height, height), Band(0, width, width))]
        columns = bands(width, TILE_COLUMNS)
        rows = bands(height, max(tile_bytes // (4 * self.channels * columns[0].size), 4 * self.margin))
        return [Tile(*places) for places in product(rows, columns)]

    def at_once(self) -> ModelProto:
        graph = Graph()
        maps = from_level(graph, self._read(graph), self.head, self.number, self.size)
        return graph.model({"maps": self._shape(self.size)}, self._given(graph, maps, self.size))

    def descending(self, size: Size, ends: tuple[Ends, Ends]) -> ModelProto:
        """What is skipped of a tile, and what is pooled."""
        graph, left = Graph(ends), _without_edges(size, ends, self.reach_down)
        maps = block_of_layers(graph, self._read(graph), self.block)
        pooled = halved(graph, maps, self.head.pooling, left)
        shapes = ([1, *one, self.channels] for one in (left, half_size(left)))
        found = (_channels_last(graph, one) for one in (maps, pooled))
        return graph.model({"maps": self._shape(size)}, dict(zip(found, shapes, strict=True)))

    def rising(self, size: Size, ends: tuple[Ends, Ends]) -> ModelProto:
        graph, sizes = Graph(ends), (size, half_size(size))
        maps = _channels_first(graph, "skip"), _channels_first(graph, "low")
        joined = joined_block(graph, maps, joining(self.head, self.number), sizes, self.head.pooling)
        end = graph.convolution(joined, leaving(self.head, self.number))
        shapes = ([1, *one, self.channels] for one in sizes)
        left = _without_edges(size, ends, self.reach_up)
        return graph.model(dict(zip(("skip", "low"), shapes, strict=True)), self._given(graph, end, left))

    def _read(self, graph: Graph) -> str:
        return _channels_first(graph, "maps") if self.number else "maps"

    def _shape(self, size: Size) -> list[int]:
        channels = _convolutions(self.block)[0].in_channels
        return [1, *size, channels] if self.number else [1, channels, *size]

    def _given(self, graph: Graph, maps: str, size: Size) -> dict[str, list[int]]:
        return {_channels_last(graph, maps): [1, *size, leaving(self.head, self.number).out_channels]}


def _without_edges(size: Size, ends: tuple[Ends, Ends], reach: int) -> Size:
    height, width = (whole - reach * (2 - sum(end)) for whole, end in zip(size, ends, strict=True))
    return height, width


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
