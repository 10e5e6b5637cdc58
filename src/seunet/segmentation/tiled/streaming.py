"""A network run over a block of an image row by row: exact to the last bit, without the memory of the whole block.

A tile of a slide needs the tile's surroundings, and for the wide filters of the SEUNet these are larger than the tile.
Two things keep them cheap.  Every layer is computed only where the layers after it look: the surroundings
shrink from layer to layer.  And a layer's rows are computed in order, from the rows of the layer before it, and let
go of when nobody will look at them again: what is held is what the skip connections wait with, not the block.

Coordinates are those of the whole image's maps.  Zero padding happens at the image's true edges and nowhere else, and
pooling starts at the image's corner, so a block has the very numbers of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

from seunet.kernels.dispatch import join_upsampled
from seunet.layers import GaussianConv2d, Pooling, SharedPointwise
from seunet.maths.fusion import softmax_in_order
from seunet.models.unet_skeleton import ConvolutionBlock, ScaleUNet
from seunet.segmentation.tiled.receptive_field import (
    FilterRadii,
    Span,
    made_by_upsampling,
    seen_by_filter,
    seen_by_pooling,
    seen_by_upsampling,
)

PIECE_ROWS: Final = 128
"""Rows of a map that are computed at a time, at most."""


class Rows(ABC):
    """The rows of one map within fixed columns, asked for from top to bottom.

    A map that is `held` keeps its rows for as long as they may be asked for again.  One that is not computes them
    again: few rows of a large map cost less than moving all of it.
    """

    def __init__(self, height: int, columns: Span, held: bool = True) -> None:
        self.height, self.columns, self.held = height, columns, held
        self._pieces: list[tuple[Span, Tensor]] = []

    def rows(self, span: Span) -> tuple[Span, Tensor]:
        """[…, rows, columns] of `span`; a little more above and below, of no meaning, where that saves a copy."""
        if not self.held:
            return self.compute(span)
        stop = self._pieces[-1][0].stop if self._pieces else span.start
        while stop < span.stop:
            fresh = Span(stop, min(stop + PIECE_ROWS, span.stop))
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
                remaining = [(rest, piece[..., rest.within(kept), :].clone())]
            else:
                remaining.append((kept, piece))
        self._pieces = remaining

    @abstractmethod
    def compute(self, span: Span) -> tuple[Span, Tensor]:
        """As `rows`, of rows that are not kept."""

    def release(self, following: int) -> None:  # noqa: B027 (nothing to tell, for those at the beginning)
        """No row above this one will be computed again: tell those that this map is made of."""


class ImageRows(Rows):
    """Pixels [3, height, width] as bytes, as the numbers from 0 to 1 that a network reads."""

    def __init__(self, pixels: Tensor, rows: Span, height: int, held_columns: Span, columns: Span) -> None:
        super().__init__(height, columns, held=False)
        self._pixels, self._rows = pixels[None, :, :, columns.within(held_columns)], rows

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        return span, self._pixels[:, :, span.within(self._rows)].float() / 255


class ConvolvedRows(Rows):
    """Convolution, norm and ReLU."""

    def __init__(
        self, source: Rows, convolution: nn.Module, norm: nn.Module, radius: int, columns: Span, held: bool
    ) -> None:
        # The columns of a map that is not held are not cut to those that matter: that would be a copy.
        super().__init__(source.height, columns if held else source.columns, held)
        self._source, self._convolution, self._norm, self._radius = source, convolution, norm, radius

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        given, features = self._source.rows(seen_by_filter(span, self._radius, self.height))
        rows, affine = span.within(given), self._norm.folded()  # type: ignore[operator]
        if isinstance(self._convolution, GaussianConv2d):
            result = self._convolution(features, affine=affine, relu=True, rows=rows)
        else:
            result = self._convolution(features, affine=affine, relu=True)[..., rows, :]
        return span, result[..., self.columns.within(self._source.columns)]

    def release(self, following: int) -> None:
        self._source.forget(following - self._radius)


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
        self._source, self._pooling, self._skipped = source, pooling, skipped

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        seen = self._seen(span)
        _, features = self._source.rows(seen)
        self._skipped.put(seen, features, self._source.columns)
        return span, self._pooling(features)

    def release(self, following: int) -> None:
        self._source.forget(self._seen(Span(following - 1, following)).stop)

    def _seen(self, span: Span) -> Span:
        return span if self._pooling.kind == "none" else seen_by_pooling(span, self._source.height)


class JoinedRows(Rows):
    """The skipped map and, beside it, the coarser one mixed and upsampled."""

    def __init__(
        self, skipped: SkippedRows, rising: Rows, reducer: SharedPointwise, columns: Span, halves: bool, held: bool
    ) -> None:
        super().__init__(skipped.height, columns if held else skipped.columns, held)
        self._skipped, self._rising, self._reducer, self._halves = skipped, rising, reducer, halves

    def compute(self, span: Span) -> tuple[Span, Tensor]:
        small, made = self._seen(span)
        # First the coarse rows: they make the pooling hand over the fine ones.
        rising = self._reducer.tile_invariant(self._rising.rows(small)[1])
        joined = join_upsampled(self._skipped.rows(made)[1], rising)
        return made, joined[..., self.columns.within(self._skipped.columns)]

    def release(self, following: int) -> None:
        small, made = self._seen(Span(following, following + 1))
        self._rising.forget(small.start)
        self._skipped.forget(made.start)

    def _seen(self, span: Span) -> tuple[Span, Span]:
        """The coarse rows that `span` needs, and the fine ones that come of them."""
        if not self._halves:
            return span, span
        small = seen_by_upsampling(span, self._rising.height)
        return small, made_by_upsampling(small, self._rising.height, self.height)


class Block:
    """A rectangle of the prediction and everything it is computed from."""

    def __init__(
        self, model: ScaleUNet, radii: FilterRadii, pixels: Tensor, held: tuple[Span, Span], size: tuple[int, int]
    ) -> None:
        """`pixels` [3, rows, columns] of type uint8 hold the part `held` (rows, columns) of an image of this size."""
        self._model, self._pixels, self._held = model, pixels, held
        self._radii = radii
        self._heights, self._widths = (self._radii.lengths(length) for length in size)

    def features(self, columns: Span) -> Rows:
        """What the head sees."""
        return self._rising(0, columns, [])

    def _rising(self, level: int, columns: Span, skips: list[SkippedRows]) -> Rows:
        """The decoder's map of a level; of the coarsest, the encoder's."""
        width = self._widths[level]
        if level == self._radii.levels:
            return self._encoded(level, columns, skips)
        radii, halves = self._radii.decoder[level], self._radii.halves
        joined = columns
        for radius in reversed(radii):
            joined = seen_by_filter(joined, radius, width)
        small, made = joined, joined
        if halves:
            small = seen_by_upsampling(joined, self._widths[level + 1])
            made = made_by_upsampling(small, self._widths[level + 1], width)
        skipped = SkippedRows(self._heights[level], made)
        rising = self._rising(level + 1, small, [*skips, skipped])
        index = self._radii.levels - 1 - level
        reducer, block = self._model.reducers[index], self._model.decoder[index]
        source = JoinedRows(skipped, rising, reducer, joined, halves, held=level > 0)  # type: ignore[arg-type]
        return self._convolved(source, block, radii, columns, level)  # type: ignore[arg-type]

    def _encoded(self, level: int, columns: Span, skips: list[SkippedRows]) -> Rows:
        """The encoder's map of a level."""
        width, seen = self._widths[level], columns
        for radius in reversed(self._radii.encoder[level]):
            seen = seen_by_filter(seen, radius, width)
        if level == 0:
            source: Rows = ImageRows(self._pixels, self._held[0], self._heights[0], self._held[1], seen)
        else:
            finer = seen_by_pooling(seen, self._widths[level - 1]) if self._radii.halves else seen
            above = self._encoded(level - 1, finer, skips)
            source = PooledRows(above, self._model.pooling, skips[level - 1], self._heights[level], seen)
        block, radii = self._model.encoder[level], self._radii.encoder[level]
        return self._convolved(source, block, radii, columns, level)  # type: ignore[arg-type]

    def _convolved(
        self, source: Rows, block: ConvolutionBlock, radii: tuple[int, ...], columns: Span, level: int
    ) -> Rows:
        spans = [columns]
        for radius in radii[:0:-1]:
            spans.append(seen_by_filter(spans[-1], radius, self._widths[level]))
        layers = zip(block.convolutions, block.norms, radii, reversed(spans), strict=True)
        for convolution, norm, radius, span in layers:
            last = convolution is block.convolutions[-1]
            source = ConvolvedRows(source, convolution, norm, radius, span, held=level > 0 or last)
        return source


def predict_block(
    model: ScaleUNet,
    radii: FilterRadii,
    pixels: Tensor,
    held: tuple[Span, Span],
    size: tuple[int, int],
    core: tuple[Span, Span],
    out: Tensor,
    advance: Callable[[float], None] | None = None,
) -> None:
    """The probabilities of `model`, whose filters have these radii, into `out` [γ, classes, rows, columns].

    They are those of the rows and columns `core` of an image of `size` (height, width); `pixels` [3, …] hold the part
    `held` of the image, as much as is seen.  `advance` is told how much of it is done, from 0 to 1.
    """
    rows, columns = core
    features = Block(model, radii, pixels, held, size).features(columns)
    for start in range(rows.start, rows.stop, PIECE_ROWS):
        piece = Span(start, min(start + PIECE_ROWS, rows.stop))
        _, seen = features.rows(piece)
        if model.projection is not None:
            seen = model.projection(seen)
        out[..., piece.within(rows), :] = softmax_in_order(model.head.tile_invariant(seen), dim=2)[0]
        features.forget(piece.stop)
        if advance is not None:
            advance((piece.stop - rows.start) / rows.length)
