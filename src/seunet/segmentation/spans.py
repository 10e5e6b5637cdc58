"""Which pixels of one map another is computed from, along one axis: filters, pooling, upsampling."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """Pixels `start` … `stop` − 1 of a map, counted from the map's own beginning."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start

    def within(self, outer: Span) -> slice:
        """Where this part lies in an array that holds `outer`."""
        if not outer.start <= self.start <= self.stop <= outer.stop:
            raise IndexError(f"{self} does not lie within {outer}")
        return slice(self.start - outer.start, self.stop - outer.start)


def halved(length: int) -> int:
    """How long a map is after pooling by 2: rounded down, never below one pixel."""
    return max(1, length // 2)


def seen_by_filter(span: Span, radius: int, length: int) -> Span:
    """What a filter of this radius reads; zeros beyond the map are not read."""
    return Span(max(0, span.start - radius), min(length, span.stop + radius))


def seen_by_pooling(span: Span, length: int) -> Span:
    """The pixels of a map of this length behind `span` of the pooled one; an odd last pixel goes with the last pair."""
    if span.stop == halved(length):
        return Span(min(2 * span.start, length - 1), length)
    return Span(2 * span.start, 2 * span.stop)


def seen_by_upsampling(span: Span, small_length: int) -> Span:
    """The pixels that bilinear × 2 reads: large(2i) needs i − 1 and i, large(2i + 1) needs i and i + 1."""
    return Span(
        min(max(0, (span.start - 1) // 2), small_length - 1),
        min(small_length, span.stop // 2 + 1),
    )


def made_by_upsampling(small: Span, small_length: int, length: int) -> Span:
    """Where on the large map the doubled pixels of `small` lie; the last is repeated where the length is odd."""
    return Span(2 * small.start, length if small.stop == small_length else 2 * small.stop)
