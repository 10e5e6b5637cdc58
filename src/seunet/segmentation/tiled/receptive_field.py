"""How far a pixel's prediction depends on its surroundings: the exact receptive field of a network, in pixels.

First which pixels of one map another is computed from, along one axis (filters, pooling, upsampling), then networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from seunet.layers import DiscreteScaleConv2d, GaussianConv2d, SteerableConv2d
from seunet.models.registry import PlainConv2d
from seunet.models.unet_skeleton import ScaleUNet


class Span(NamedTuple):
    """Pixels `start` … `stop` − 1 of a map, counted from the map's own beginning."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start

    def common(self, other: Span) -> Span:
        """The pixels of both; of length 0 where there are none."""
        start = max(self.start, other.start)
        return Span(start, max(start, min(self.stop, other.stop)))

    def counted_from(self, start: int) -> Span:
        """The same pixels, where counting begins with `start`."""
        return Span(self.start - start, self.stop - start)

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


@dataclass(frozen=True)
class FilterRadii:
    """The radius of every convolution of a U, at each level from the finest, in pixels of that level."""

    encoder: tuple[tuple[int, ...], ...]
    decoder: tuple[tuple[int, ...], ...]
    halves: bool
    """Whether a level has half the pixels of the one above it along each side."""

    @property
    def levels(self) -> int:
        """How often the map is pooled."""
        return len(self.decoder)

    @property
    def stride_px(self) -> int:
        """Pixels of the image along the side of one pixel of the coarsest map."""
        return 2**self.levels if self.halves else 1

    def lengths(self, length: int) -> tuple[int, ...]:
        """How long each level's map of an image of this length is."""
        found = [length]
        for _ in range(self.levels):
            found.append(halved(found[-1]) if self.halves else found[-1])
        return tuple(found)


def filter_radii(model: ScaleUNet) -> FilterRadii:
    """What the layers of `model` read around each pixel: the widest of all scales."""

    def of_block(block: nn.Module) -> tuple[int, ...]:
        return tuple(layer_radius(layer) for layer in block.convolutions)  # type: ignore[union-attr]

    return FilterRadii(
        tuple(of_block(block) for block in model.encoder),
        tuple(of_block(block) for block in reversed(model.decoder)),
        model.pooling.kind != "none",
    )


def layer_radius(layer: nn.Module) -> int:
    """The largest radius of a layer's filters."""
    if isinstance(layer, PlainConv2d):
        return 1
    if isinstance(layer, GaussianConv2d):
        return max(layer.filters()[1])
    if isinstance(layer, SteerableConv2d):
        return max(layer.get_buffer(f"row_taps_{k}").shape[1] // 2 for k in range(len(layer.scales)))
    if isinstance(layer, DiscreteScaleConv2d):
        return max(
            int(scale) if scale.is_integer() else layer.get_buffer(f"basis_{k}").shape[-1] // 2
            for k, scale in enumerate(layer.scales)
        )
    raise TypeError(f"the reach of {type(layer).__name__} is not known")


def seen_by_network(radii: FilterRadii, span: Span, length: int) -> Span:
    """The pixels of an image of this length that `span` of the prediction is computed from, along one axis."""
    lengths = radii.lengths(length)
    for level in range(radii.levels):
        for radius in reversed(radii.decoder[level]):
            span = seen_by_filter(span, radius, lengths[level])
        if radii.halves:
            span = seen_by_upsampling(span, lengths[level + 1])
    for level in range(radii.levels, -1, -1):
        for radius in reversed(radii.encoder[level]):
            span = seen_by_filter(span, radius, lengths[level])
        if level and radii.halves:
            span = seen_by_pooling(span, lengths[level - 1])
    return span


def receptive_radius(radii: FilterRadii) -> int:
    """The largest distance in pixels at which the image can change a prediction, whatever its place in the grid."""
    middle = 2**20
    reached = [
        seen_by_network(radii, Span(middle + place, middle + place + 1), 2 * middle) for place in range(radii.stride_px)
    ]
    return max(max(middle + place - span.start, span.stop - (middle + place + 1)) for place, span in enumerate(reached))
