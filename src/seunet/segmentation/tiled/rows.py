"""The maps of a network as rows that are asked for from top to bottom, computed from those of the maps before them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import torch
from torch import Tensor, nn

from seunet.kernels.resizing import upsampled
from seunet.layers import GaussianConv2d, Pooling, SharedPointwise
from seunet.segmentation.tiled.receptive_field import (
    Span,
    made_by_upsampling,
    seen_by_filter,
    seen_by_pooling,
    seen_by_upsampling,
)


class Rows(ABC):
    """The rows of one map within fixed columns, asked for from top to bottom.

    A map that is `held` keeps its rows for as long as they may be asked for again.  One that is not computes them
    again: few rows of a large map cost less than moving all of it.
    """

    most_rows: int | None = None
    """That are computed at a time; None for as many as are asked for."""

    def __init__(self, height: int, columns: Span, held: bool = True) -> None:
        self.height, self.columns, self.held = height, columns, held
        self.sources: tuple[Rows, ...] = ()
        """The maps that this one is made of."""
        self._pieces: list[tuple[Span, Tensor]] = []

    def rows(self, span: Span) -> tuple[Span, Tensor]:
        """[…, rows, columns] of `span`; a little more above and below, of no meaning, where that saves a copy."""
        if not self.held:
            return self.compute(span)
        stop = self._pieces[-1][0].stop if self._pieces else span.start
        while stop < span.stop:
            fresh = Span(stop, min(stop + (self.most_rows or span.length), span.stop))
            given, piece = self.compute(fresh)
            self._pieces.append((fresh, piece[..., fresh.within(given), :]))
            self.release(fresh.stop)
            stop = fresh.stop
        parts = [
            piece[..., Span(max(span.start, kept.start), min(span.stop, kept.stop)).within(kept), :]
            for kept, piece in self._pieces
            if kept.start < span.stop and kept.stop > span.start
        ]
        return span, parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    def forget(self, before: int) -> None:
        """Rows above this one will not be asked for again."""
        if not self.held:
            self.release(before)
        remaining: list[tuple[Span, Tensor]] = []
        for kept, piece in self._pieces:
            if kept.stop <= before:
                # An empty piece remembers which row comes next.
                remaining = [(Span(kept.stop, kept.stop), piece[..., :0, :].clone())]
            elif kept.start < before:
                rest = Span(before, kept.stop)
                left = piece[..., rest.within(kept), :]
                # Most of a piece is kept as it lies: copying it would cost more than the memory is worth.
                mostly = 2 * left.nbytes > left.untyped_storage().nbytes()
                remaining = [(rest, left if mostly else left.clone())]
            else:
                remaining.append((kept, piece))
        self._pieces = remaining

    def release(self, following: int) -> None:
        """No row above this one will be computed again: tell those that this map is made of."""
        if following >= self.height:
            needed = [source.height for source in self.sources]
        else:
            needed = [span.start for span in self.seen(Span(following, following + 1))]
        for source, row in zip(self.sources, needed, strict=True):
            source.forget(row)

    def prepare(self, span: Span) -> None:  # noqa: B027 (nothing to prepare, for most)
        """Compute the coarser maps that `span` needs at once: then no piece of them is joined with another."""

    @abstractmethod
    def compute(self, span: Span) -> tuple[Span, Tensor]:
        """As `rows`, of rows that are not kept."""

    def seen(self, span: Span) -> tuple[Span, ...]:
        """The rows of each source that `span` is computed from."""
        return ()


class ImageRows(Rows):
    """Pixels [3, height, width] as bytes, as the numbers from 0 to 1 that a network reads."""

    def __init__(self, pixels: Tensor, rows: Span, height: int, held_columns: Span, columns: Span) -> None:
        super().__init__(height, columns, held=False)
        self._pixels, self._rows = pixels[None, :, :, columns.within(held_columns)], rows

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        pixels = self._pixels[:, :, span.within(self._rows)]
        return span, torch.empty(pixels.shape).copy_(pixels).div_(255)


class ConvolvedRows(Rows):
    """Convolution, norm and ReLU of a map, or of two whose channels follow each other."""

    def __init__(
        self,
        source: Rows,
        beside: Rows | None,
        convolution: nn.Module,
        norm: nn.Module,
        radius: int,
        columns: Span,
        held: bool,
        most_rows: int | None,
    ) -> None:
        # The columns of a map that is not held are not cut to those that matter: that would be a copy.
        super().__init__(source.height, columns if held else source.columns, held)
        self.sources = (source,) if beside is None else (source, beside)
        self._source, self._beside, self.most_rows = source, beside, most_rows
        self._convolution, self._norm, self._radius = convolution, norm, radius

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        seen, more = self.seen(span)[0], None
        if self._beside is not None:
            # First the coarse rows: they make the pooling hand over the fine ones.
            given, more = self._beside.rows(seen)
            more = more[..., seen.within(given), :]
        given, features = self._source.rows(seen)
        rows, affine = span.within(given), self._affine
        if isinstance(self._convolution, GaussianConv2d):
            result = self._convolution(features, affine=affine, relu=True, rows=rows, beside=more)
        else:
            joined = features if more is None else torch.cat([features, more], dim=2)
            result = self._convolution(joined, affine=affine, relu=True)[..., rows, :]
        return span, result[..., self.columns.within(self._source.columns)]

    def seen(self, span: Span) -> tuple[Span, ...]:
        return (seen_by_filter(span, self._radius, self.height),) * len(self.sources)

    def prepare(self, span: Span) -> None:
        self.sources[-1].prepare(self.seen(span)[-1])

    @cached_property
    def _affine(self) -> Tensor | None:
        """The norm as numbers that the convolution applies: folded once, not for each piece."""
        return self._norm.folded()  # type: ignore[operator, no-any-return]


class SkippedRows(Rows):
    """What waits for the decoder: handed over by the one who pools it, cut to what the decoder looks at."""

    def put(self, span: Span, features: Tensor, columns: Span) -> None:
        """The next rows."""
        self._pieces.append((span, features[..., self.columns.within(columns)].contiguous()))

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        raise IndexError(f"{span} was not pooled yet")


class PooledRows(Rows):
    """Half the pixels of a map; the map itself goes to the skip connection."""

    def __init__(self, source: Rows, pooling: Pooling, skipped: SkippedRows, height: int, columns: Span) -> None:
        super().__init__(height, columns)
        self.sources = (source,)
        self._source, self._pooling, self._skipped = source, pooling, skipped

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        (seen,) = self.seen(span)
        _, features = self._source.rows(seen)
        self._skipped.put(seen, features, self._source.columns)
        return span, self._pooling(features)

    def seen(self, span: Span) -> tuple[Span]:
        return (span if self._pooling.kind == "none" else seen_by_pooling(span, self._source.height),)


class UpsampledRows(Rows):
    """The coarser map, mixed and upsampled to the size of the skipped one."""

    def __init__(self, skipped: SkippedRows, rising: Rows, reducer: SharedPointwise, halves: bool, held: bool) -> None:
        super().__init__(skipped.height, skipped.columns, held)
        self.sources = (rising,)
        self._rising, self._reducer, self._halves = rising, reducer, halves

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        small, made = self._small_and_made(span)
        rising = self._reducer.tile_invariant(self._rising.rows(small)[1])
        return made, upsampled(rising, made.length, self.columns.length) if self._halves else rising

    def prepare(self, span: Span) -> None:
        self._rising.rows(*self.seen(span))

    def seen(self, span: Span) -> tuple[Span]:
        return (self._small_and_made(span)[0],)

    def _small_and_made(self, span: Span) -> tuple[Span, Span]:
        """The coarse rows that `span` needs, and the fine ones that come of them."""
        if not self._halves:
            return span, span
        small = seen_by_upsampling(span, self._rising.height)
        return small, made_by_upsampling(small, self._rising.height, self.height)
