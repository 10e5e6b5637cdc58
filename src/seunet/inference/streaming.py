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
from typing import Final

import torch
from torch import Tensor, nn

from seunet.inference.placeless import mixed_channels
from seunet.inference.reach import filter_radii, layer_radius
from seunet.kernels.dispatch import join_upsampled
from seunet.layers import GaussianConv2d, SharedPointwise
from seunet.maths.fusion import softmax_in_order
from seunet.maths.spans import (
    Span,
    made_by_upsampling,
    seen_by_filter,
    seen_by_pooling,
    seen_by_upsampling,
)
from seunet.models.skeleton import ConvolutionBlock, ScaleUNet

PIECE_ROWS: Final = 256
"""Rows of a map that are computed at a time, at most."""


class Rows(ABC):
    """The rows of one map within fixed columns, asked for from top to bottom."""

    def __init__(self, height: int, columns: Span) -> None:
        self.height, self.columns = height, columns
        self._pieces: list[tuple[Span, Tensor]] = []

    def rows(self, span: Span) -> Tensor:
        """[…, rows, columns]: what is missing is computed."""
        stop = self._pieces[-1][0].stop if self._pieces else span.start
        while stop < span.stop:
            fresh = Span(stop, min(stop + PIECE_ROWS, span.stop))
            self._pieces.append((fresh, self.compute(fresh)))
            stop = fresh.stop
        parts = [
            piece[..., Span(max(span.start, held.start), min(span.stop, held.stop)).within(held), :]
            for held, piece in self._pieces
            if held.start < span.stop and held.stop > span.start
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    def forget(self, before: int) -> None:
        """Rows above this one will not be asked for again."""
        kept: list[tuple[Span, Tensor]] = []
        for held, piece in self._pieces:
            if held.stop <= before:
                # The place in the file of rows is remembered: the next row to compute is the one after it.
                kept = [(Span(held.stop, held.stop), piece[..., :0, :].clone())]
            elif held.start < before:
                rest = Span(before, held.stop)
                kept = [(rest, piece[..., rest.within(held), :].clone())]
            else:
                kept.append((held, piece))
        self._pieces = kept

    @abstractmethod
    def compute(self, span: Span) -> Tensor:
        """Rows that were not computed before."""


class ImageRows(Rows):
    """Pixels [3, height, width] as bytes, as the numbers from 0 to 1 that a network reads."""

    def __init__(self, pixels: Tensor, rows: Span, height: int, held_columns: Span, columns: Span) -> None:
        super().__init__(height, columns)
        self._pixels, self._rows = pixels[None, :, :, columns.within(held_columns)], rows

    def rows(self, span: Span) -> Tensor:
        return self.compute(span)

    def forget(self, before: int) -> None:
        """The pixels belong to someone else."""

    def compute(self, span: Span) -> Tensor:
        return self._pixels[:, :, span.within(self._rows)].float() / 255


class ConvolvedRows(Rows):
    """Convolution, norm and ReLU."""

    def __init__(self, source: Rows, convolution: nn.Module, norm: nn.Module, columns: Span) -> None:
        super().__init__(source.height, columns)
        self._source, self._convolution, self._radius = source, convolution, layer_radius(convolution)
        self._affine = norm.folded()  # type: ignore[operator]

    def compute(self, span: Span) -> Tensor:
        seen = seen_by_filter(span, self._radius, self.height)
        features, rows = self._source.rows(seen), span.within(seen)
        if isinstance(self._convolution, GaussianConv2d):
            result = self._convolution(features, affine=self._affine, relu=True, rows=rows)
        else:
            result = self._convolution(features, affine=self._affine, relu=True)[..., rows, :]
        del features
        self._source.forget(span.stop - self._radius)
        return result[..., self.columns.within(self._source.columns)]  # type: ignore[no-any-return]


class SkippedRows(Rows):
    """What waits for the decoder: handed over by the one who pools it, cut to what the decoder looks at."""

    def put(self, span: Span, features: Tensor, columns: Span) -> None:
        """The next rows."""
        self._pieces.append((span, features[..., self.columns.within(columns)].contiguous()))

    def compute(self, span: Span) -> Tensor:
        raise IndexError(f"{span} was not pooled yet")


class PooledRows(Rows):
    """Half the pixels of a map; the map itself goes to the skip connection."""

    def __init__(self, source: Rows, pooling: nn.Module, skipped: SkippedRows, height: int, columns: Span) -> None:
        super().__init__(height, columns)
        self._source, self._pooling, self._skipped = source, pooling, skipped
        self._halves = pooling.kind != "none"

    def compute(self, span: Span) -> Tensor:
        seen = seen_by_pooling(span, self._source.height) if self._halves else span
        features = self._source.rows(seen)
        self._source.forget(seen.stop)
        self._skipped.put(seen, features, self._source.columns)
        return self._pooling(features)  # type: ignore[no-any-return]


class JoinedRows(Rows):
    """The skipped map and, beside it, the coarser one mixed and upsampled."""

    def __init__(
        self, skipped: SkippedRows, rising: Rows, reducer: SharedPointwise, columns: Span, halves: bool
    ) -> None:
        super().__init__(skipped.height, columns)
        self._skipped, self._rising, self._reducer, self._halves = skipped, rising, reducer, halves

    def compute(self, span: Span) -> Tensor:
        if not self._halves:
            rising = mixed_channels(self._reducer, self._rising.rows(span))
            joined = join_upsampled(self._skipped.rows(span), rising)
            self._rising.forget(span.stop)
            self._skipped.forget(span.stop)
            return joined
        small = seen_by_upsampling(span, self._rising.height)
        made = made_by_upsampling(small, self._rising.height, self.height)
        # First the coarse rows: they make the pooling hand over the fine ones.
        rising = mixed_channels(self._reducer, self._rising.rows(small))
        joined = join_upsampled(self._skipped.rows(made), rising)
        following = seen_by_upsampling(Span(span.stop, span.stop + 1), self._rising.height).start
        self._rising.forget(following)
        self._skipped.forget(2 * following)
        return joined[..., span.within(made), self.columns.within(self._skipped.columns)]


class Block:
    """A rectangle of the prediction and everything it is computed from."""

    def __init__(self, model: ScaleUNet, pixels: Tensor, held: tuple[Span, Span], size: tuple[int, int]) -> None:
        """`pixels` [3, rows, columns] of type uint8 hold the part `held` (rows, columns) of an image of this size."""
        self._model, self._pixels, self._held = model, pixels, held
        self._radii = filter_radii(model)
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
        source = JoinedRows(skipped, rising, self._model.reducers[index], joined, halves)  # type: ignore[arg-type]
        return self._convolved(source, self._model.decoder[index], columns, width)  # type: ignore[arg-type]

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
        return self._convolved(source, self._model.encoder[level], columns, width)  # type: ignore[arg-type]

    def _convolved(self, source: Rows, block: ConvolutionBlock, columns: Span, width: int) -> Rows:
        spans = [columns]
        for convolution in list(block.convolutions)[:0:-1]:
            spans.append(seen_by_filter(spans[-1], layer_radius(convolution), width))
        for convolution, norm, span in zip(block.convolutions, block.norms, reversed(spans), strict=True):
            source = ConvolvedRows(source, convolution, norm, span)
        return source


def predict_block(
    model: ScaleUNet,
    pixels: Tensor,
    held: tuple[Span, Span],
    size: tuple[int, int],
    core: tuple[Span, Span],
    out: Tensor,
) -> None:
    """The probabilities of `model` for the rows and columns `core` of an image of `size` (height, width), into
    `out` [γ, classes, rows, columns]; `pixels` [3, …] hold the part `held` of the image, as much as is seen."""
    rows, columns = core
    features = Block(model, pixels, held, size).features(columns)
    for start in range(rows.start, rows.stop, PIECE_ROWS):
        piece = Span(start, min(start + PIECE_ROWS, rows.stop))
        seen = features.rows(piece)
        if model.projection is not None:
            seen = model.projection(seen)
        out[..., piece.within(rows), :] = softmax_in_order(mixed_channels(model.head, seen), dim=2)[0]
        features.forget(piece.stop)
