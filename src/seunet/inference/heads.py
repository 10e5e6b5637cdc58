"""A network over one tile: head after head, each with the surroundings its own filters see, then fused."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seunet.errors import unknown_name
from seunet.inference.image import RgbArray
from seunet.inference.reach import filter_radii, seen_by_network
from seunet.inference.streaming import block_logits
from seunet.maths.fusion import FUSIONS, confidence, first_largest, fuse
from seunet.maths.spans import Span
from seunet.models.gaussian import SEUNet
from seunet.models.skeleton import ScaleUNet

FUSED_ROWS: Final = 256
"""Rows that are fused at a time: what fusing needs beside its result is a few times this."""


class Rectangle(NamedTuple):
    """Rows and columns of a raster."""

    rows: Span
    columns: Span

    @property
    def pixels(self) -> int:
        return self.rows.length * self.columns.length


class Prediction(NamedTuple):
    """For every pixel of a tile."""

    probabilities: Tensor
    """[classes, height, width], float32."""
    labels: NDArray[np.uint8]
    """The most probable class; the first of equals."""
    winners: NDArray[np.uint8]
    """The most confident head, numbered from 0; the finest of equals."""
    confidence: NDArray[np.float32]
    """Largest less second largest fused probability."""


class HeadwiseNetwork:
    """`fuse(model(image).softmax(2), fusion)` of parts of an image, with the very numbers of the whole.

    The heads of a SEUNet meet nowhere before the fusion: one after the other they take a fraction of the memory, and
    each sees only as far as its own filters reach.
    """

    def __init__(self, model: ScaleUNet, fusion: str = "p_ens") -> None:
        if fusion not in FUSIONS:
            raise unknown_name("fusion", fusion, FUSIONS)
        self.classes, self.heads, self.fusion = model.classes, model.heads, fusion
        self._parts: list[ScaleUNet] = [model]
        if isinstance(model, SEUNet) and model.heads > 1:
            self._parts = [model.only_scale(head) for head in range(model.heads)]
        self._radii = [filter_radii(part) for part in self._parts]
        self.stride_px = self._radii[0].stride_px

    def seen(self, core: Rectangle, height_px: int, width_px: int) -> Rectangle:
        """What must be read of an image of this size to predict `core` of it."""
        rows = [seen_by_network(radii, core.rows, height_px) for radii in self._radii]
        columns = [seen_by_network(radii, core.columns, width_px) for radii in self._radii]
        return Rectangle(_around(rows), _around(columns))

    def predict(self, pixels: RgbArray, held: Rectangle, core: Rectangle, height_px: int, width_px: int) -> Prediction:
        """`pixels` [height, width, 3] are the part `held` of an image of this size; `core` of it is predicted."""
        planes = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
        shape = core.rows.length, core.columns.length
        with torch.inference_mode():
            found = torch.empty((self.heads, self.classes, *shape))
            for number, part in enumerate(self._parts):
                out = found if len(self._parts) == 1 else found[number : number + 1]
                block_logits(part, planes, held, (height_px, width_px), core, out)
            return self._fused(found)

    def _fused(self, found: Tensor) -> Prediction:
        probabilities = torch.empty(found.shape[1:])
        labels, winners = (np.empty(found.shape[2:], dtype=np.uint8) for _ in range(2))
        sure = np.empty(found.shape[2:], dtype=np.float32)
        for start in range(0, found.shape[2], FUSED_ROWS):
            rows = slice(start, start + FUSED_ROWS)
            heads = found[None, :, :, rows]
            fused = fuse(heads, self.fusion)
            probabilities[:, rows] = fused[0]
            labels[rows] = first_largest(fused, dim=1)[0].to(torch.uint8).numpy()
            winners[rows] = first_largest(confidence(heads), dim=1)[0].to(torch.uint8).numpy()
            sure[rows] = confidence(fused[:, None])[0, 0].numpy()
        return Prediction(probabilities, labels, winners, sure)


def _around(spans: list[Span]) -> Span:
    return Span(min(span.start for span in spans), max(span.stop for span in spans))


def tile_cores(height_px: int, width_px: int, tile_px: int) -> list[Rectangle]:
    """The tiles of a raster, row by row: squares that end where the raster ends."""
    return [
        Rectangle(Span(y, min(y + tile_px, height_px)), Span(x, min(x + tile_px, width_px)))
        for y in range(0, height_px, tile_px)
        for x in range(0, width_px, tile_px)
    ]
