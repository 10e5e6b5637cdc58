"""The levels of a head in an ONNX graph, one within the other, each in strips that stay in the processor's cache.

A runtime writes each map of each step to memory and reads it again for the next.  Large maps do not stay in the cache on
the way, and time is spent on waiting for memory.  Where the size is known, a level is therefore computed in strips of
rows, all steps of a strip one after the other.  Strips overlap by what the filters read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from seunet.export.onnx_layers import block_of_layers, joined_block, reach
from seunet.export.onnx_operators import Graph
from seunet.export.onnx_sizes import Size, half_size, halved
from seunet.export.portable import PortableHead

STRIP_BYTES: Final = 4_000_000
"""Of one map of a strip: several of them are needed at a time."""
LEAST_ROWS: Final = 64


class Strip(NamedTuple):
    """The rows from … to … of a level that are asked for, and those that are computed for it by the encoder."""

    first: int
    stop: int
    known_first: int
    known_stop: int


def head_of(graph: Graph, images: str, head: PortableHead, size: Size | None) -> str:
    """Images → logits of a head; `size` of the images where it is known."""
    return _level(graph, images, head, 0, size)


def _level(graph: Graph, maps: str, head: PortableHead, level: int, size: Size | None) -> str:
    """What a level and all below it make of maps; the first one ends with the logits."""
    encoder = head.encoder[level]
    if level == len(head.encoder) - 1:
        return _ended(graph, block_of_layers(graph, maps, encoder), head, level)
    decoder, reducer = head.decoder[-1 - level], head.reducers[-1 - level]
    # One row more, because what comes up is interpolated; even, because it is pooled.
    margin = reach(decoder) + 1 + (reach(decoder) + 1) % 2
    strips = _strips(size, head.head.in_channels * 2**level, margin + reach(encoder), head.pooling, margin)
    skips, pooled = [], []
    for strip in strips:
        graph.edges = _edges(strip, size)
        given = maps if len(strips) == 1 else _grown(graph, maps, strip, reach(encoder), size)
        skips.append(block_of_layers(graph, given, encoder))
        half = halved(graph, skips[-1], head.pooling, _part(strip, size))
        if len(strips) > 1:
            skipped = (strip.first - strip.known_first) // 2
            half = graph.rows(half, skipped, skipped + strip.stop // 2 - strip.first // 2)
        pooled.append(half)
    graph.edges = (True, True)
    small = half_size(size) if head.pooling != "none" else size
    below = _level(graph, _together(graph, pooled), head, level + 1, small)
    found = []
    for strip, skip in zip(strips, skips, strict=True):
        graph.edges = _edges(strip, size)
        low, sizes = below, None
        if size is not None and small is not None:
            stop = small[0] if strip.known_stop == size[0] else strip.known_stop // 2
            if len(strips) > 1:
                low = graph.rows(below, strip.known_first // 2, stop)
            sizes = (_part(strip, size), (stop - strip.known_first // 2, small[1]))
        made = joined_block(graph, (skip, low), reducer, decoder, sizes, head.pooling)  # type: ignore[arg-type]
        made = _ended(graph, made, head, level)
        if len(strips) > 1:
            cut = strip.first - strip.known_first - reach(decoder) * (not graph.edges[0])
            made = graph.rows(made, cut, cut + strip.stop - strip.first)
        found.append(made)
    graph.edges = (True, True)
    return _together(graph, found)


def _ended(graph: Graph, maps: str, head: PortableHead, level: int) -> str:
    return maps if level else graph.convolution(maps, head.head)


def _strips(size: Size | None, channels: int, overlap: int, pooling: str, margin: int) -> list[Strip]:
    """Strips of a level, of even height and at least as high as they overlap; one where the size is not known."""
    if size is None or pooling == "none":
        return [Strip(0, 0, 0, 0) if size is None else Strip(0, size[0], 0, size[0])]
    rows = max(STRIP_BYTES // (4 * channels * size[1]) // 2 * 2, LEAST_ROWS, overlap + overlap % 2)
    count = max(size[0] // rows, 1)
    firsts = [size[0] * number // count // 2 * 2 for number in range(count)]
    return [
        Strip(first, stop, max(first - margin, 0), min(stop + margin, size[0]))
        for first, stop in zip(firsts, [*firsts[1:], size[0]], strict=True)
    ]


def _edges(strip: Strip, size: Size | None) -> tuple[bool, bool]:
    return strip.first == 0, size is None or strip.stop == size[0]


def _part(strip: Strip, size: Size | None) -> Size | None:
    """The size of what the encoder knows of a strip."""
    return None if size is None else (strip.known_stop - strip.known_first, size[1])


def _grown(graph: Graph, maps: str, strip: Strip, rows: int, size: Size) -> str:
    return graph.rows(maps, max(strip.known_first - rows, 0), min(strip.known_stop + rows, size[0]))


def _together(graph: Graph, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=2)
