"""What the heads of a network say together of each pixel: class, probabilities, the surest head and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seunet.maths.fusion import Fusion, confidence, first_largest, fuse
from seunet.maths.rim import without_rim
from seunet.memory import own_pages

FUSED_ROWS: Final = 32
"""Rows that are fused at a time: the steps between take several times the memory of the result."""


@dataclass(frozen=True)
class Prediction:
    """What is said of a rectangle of pixels."""

    labels: NDArray[np.uint8]
    """[height, width]: the most probable class, the lower of equals."""
    probabilities: NDArray[np.float32]
    """[classes, height, width]"""
    heads: NDArray[np.uint8]
    """[height, width]: the most confident head, the finest of equals."""
    confidence: NDArray[np.float32]
    """[height, width]: p_max − p_second of that head."""
    rim: NDArray[np.bool_] | None = None
    """[height, width]: where the rim between objects is likelier than their inside, for models that learnt it."""

    def rows(self, start: int, stop: int) -> Prediction:
        """What is said of some of its rows."""
        part = slice(start, stop)
        rim = None if self.rim is None else self.rim[part]
        return Prediction(self.labels[part], self.probabilities[:, part], self.heads[part], self.confidence[part], rim)


class Together:
    """Probabilities [heads, classes, height, width], which are filled from the top, as one prediction.

    Where `rim` is a class, the rim is told apart by its odds against the class before it, and counts as that class.
    """

    def __init__(self, found: Tensor, fusion: Fusion, rim: int | None, rim_odds: float) -> None:
        self._found, self._fusion, self._rim, self._rim_odds = found, fusion, rim, rim_odds
        height, width = found.shape[2:]
        classes = found.shape[1] - (rim is not None)
        self._probabilities = torch.from_numpy(own_pages((classes, height, width), np.float32))
        self._labels, self._heads = (torch.empty(height, width, dtype=torch.uint8) for _ in range(2))
        self._certainty = torch.empty(height, width)
        self._on_rim = None if rim is None else torch.empty(height, width, dtype=torch.bool)
        self.said = Prediction(
            self._labels.numpy(),
            self._probabilities.numpy(),
            self._heads.numpy(),
            self._certainty.numpy(),
            None if self._on_rim is None else self._on_rim.numpy(),
        )
        self._done = 0

    def fuse_to(self, stop: int) -> tuple[int, int]:
        """Say what follows for the rows above `stop` that nothing was said of yet: from … to."""
        first, self._done = self._done, stop
        for start in range(first, stop, FUSED_ROWS):
            rows = slice(start, min(start + FUSED_ROWS, stop))
            part = self._found[None, :, :, rows]
            if self._on_rim is not None and self._rim is not None:
                apart = fuse(part, self._fusion)[0]
                self._on_rim[rows] = apart[self._rim] > self._rim_odds * apart[self._rim - 1]
                part = without_rim(part, self._rim)
            fused = fuse(part, self._fusion)[0]
            self._probabilities[:, rows] = fused
            self._labels[rows] = first_largest(fused, dim=0)
            sure = confidence(part)[0]
            self._heads[rows] = first_largest(sure, dim=0)
            self._certainty[rows] = sure.amax(0)
        return first, stop
