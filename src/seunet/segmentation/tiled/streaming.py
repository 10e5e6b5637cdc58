"""A network run over a block of an image row by row: exact to the last bit, without the memory of the whole block.

A tile of a slide needs the tile's surroundings, and for the wide filters of the SEUNet these are larger than the tile.
Two things keep them cheap.  Every layer is computed only where the layers after it look: the surroundings
shrink from layer to layer.  And a layer's rows are computed in order, from the rows of the layer before it, and let
go of when nobody will look at them again: what is held is what the skip connections wait with, not the block.

Coordinates are those of the whole image's maps.  Zero padding happens at the image's true edges and nowhere else, and
pooling starts at the image's corner, so a block has the very numbers of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torch import Tensor

from seunet.maths.fusion import softmax_in_order
from seunet.models.convolution_block import ConvolutionBlock
from seunet.models.unet_skeleton import ScaleUNet
from seunet.segmentation.tiled.receptive_field import (
    FilterRadii,
    Span,
    made_by_upsampling,
    seen_by_filter,
    seen_by_pooling,
    seen_by_upsampling,
)
from seunet.segmentation.tiled.rows import (
    ConvolvedRows,
    ImageRows,
    PooledRows,
    Rows,
    SkippedRows,
    UpsampledRows,
)

FEW_CHANNELS: Final = 12

SMALL_PX: Final = 1 << 21
"""A block of up to so many pixels, of a few channels, has all of its coarser maps in memory at once."""
PIECE_ROWS, MOST_PIECE_ROWS = 96, 768
"""Rows of a map that are computed at a time: of a large block or a wide map, and at most."""
PIECE_PX: Final = 1 << 19
"""Of a piece of a small block: a narrow map has more rows, for fewer steps."""


def piece_rows(width: int) -> int:
    """Rows of a map of this width that are computed at a time in a small block, at most."""
    return max(PIECE_ROWS, min(MOST_PIECE_ROWS, PIECE_PX // max(width, 1) // 32 * 32))


class Block:
    """A rectangle of the prediction and everything it is computed from."""

    def __init__(
        self,
        model: ScaleUNet,
        radii: FilterRadii,
        pixels: Tensor,
        held: tuple[Span, Span],
        size: tuple[int, int],
        small: bool,
    ) -> None:
        """`pixels` [3, rows, columns] of type uint8 hold the part `held` (rows, columns) of an image of this size."""
        self._model, self._pixels, self._held, self._small = model, pixels, held, small
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
        beside = UpsampledRows(skipped, rising, reducer, halves, held=level > 0)  # type: ignore[arg-type]
        return self._convolved(skipped, beside, block, radii, columns, level)  # type: ignore[arg-type]

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
        return self._convolved(source, None, block, radii, columns, level)  # type: ignore[arg-type]

    def _convolved(
        self,
        source: Rows,
        beside: Rows | None,
        block: ConvolutionBlock,
        radii: tuple[int, ...],
        columns: Span,
        level: int,
    ) -> Rows:
        spans = [columns]
        for radius in radii[:0:-1]:
            spans.append(seen_by_filter(spans[-1], radius, self._widths[level]))
        layers = zip(block.convolutions, block.norms, radii, reversed(spans), strict=True)
        for convolution, norm, radius, span in layers:
            last = convolution is block.convolutions[-1]
            held, most = level > 0 or last, piece_rows(span.length) if self._small else PIECE_ROWS
            # The finest map is asked for by coarser ones, whose pieces are small enough for it too.
            source = ConvolvedRows(
                source, beside, convolution, norm, radius, span, held, most_rows=most if level > 0 else None
            )
            beside = None
        return source


def predict_block(
    model: ScaleUNet,
    radii: FilterRadii,
    pixels: Tensor,
    held: tuple[Span, Span],
    size: tuple[int, int],
    core: tuple[Span, Span],
) -> Iterator[tuple[Span, Tensor]]:
    """The probabilities of `model`, whose filters have these radii: rows of `core`, from its first on, by and by.

    They are [γ, classes, rows, columns] of the rows and columns `core` of an image of `size` (height, width);
    `pixels` [3, …] hold the part `held` of the image, as much as is seen.
    """
    rows, columns = core
    # As for a head of a dozen channels; wider networks need the memory.
    width = columns.length * max(1, model.heads * model.head.convolution.in_channels // FEW_CHANNELS)
    small = rows.length * width <= SMALL_PX
    features = Block(model, radii, pixels, held, size, small).features(columns)
    if small:
        features.prepare(rows)
    step = piece_rows(width) if small else PIECE_ROWS
    for start in range(rows.start, rows.stop, step):
        piece = Span(start, min(start + step, rows.stop))
        _, seen = features.rows(piece)
        if model.projection is not None:
            seen = model.projection(seen)
        yield piece.counted_from(rows.start), softmax_in_order(model.head.tile_invariant(seen), dim=2)[0]
        features.forget(piece.stop)
