"""What the heads of a network say together of each pixel: class, probabilities, the surest head and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from seunet.maths.fusion import Fusion, confidence, first_largest, fuse
from seunet.maths.rim import without_rim

FUSED_ROWS: Final = 160
"""Rows of all heads that are fused at a time: the steps between take several times the memory of the result."""


@dataclass(frozen=True)
class Prediction:
    """What is said of a rectangle of pixels."""

    labels: NDArray[np.uint8]
    """[height, width]: the most probable class, the lower of equals."""
    probabilities: NDArray[np.float32] | None
    """[classes, height, width], where they are wanted"""
    heads: NDArray[np.uint8]
    """[height, width]: the most confident head, the finest of equals."""
    confidence: NDArray[np.float32]
    """[height, width]: p_max − p_second of that head."""
    rim: NDArray[np.bool_] | None = None
    """[height, width]: where the rim between objects is likelier than their inside, for models that learnt it."""

    def rows(self, start: int, stop: int) -> Prediction:
        """What is said of some of its rows."""
        part = slice(start, stop)
        chances = None if self.probabilities is None else self.probabilities[:, part]
        rim = None if self.rim is None else self.rim[part]
        return Prediction(self.labels[part], chances, self.heads[part], self.confidence[part], rim)


def fuse_rows(found: Tensor, said: Prediction, top: int, fusion: Fusion, rim: int | None, rim_odds: float) -> None:
    """Say of the rows from `top` on what follows from their probabilities `found` [heads, classes, rows, width].

    Where `rim` is a class, the rim is told apart by its odds against the class before it, and counts as that class.
    """
    step, rows = max(1, FUSED_ROWS // len(found)), found.shape[2]
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        few, part = slice(top + start, top + stop), found[None, :, :, start:stop]
        if rim is not None and said.rim is not None:
            apart = fuse(part, fusion)[0]
            said.rim[few] = apart[rim] > rim_odds * apart[rim - 1]
            part = without_rim(part, rim)
        fused, sure = fuse(part, fusion)[0], confidence(part)[0]
        if said.probabilities is not None:
            said.probabilities[:, few] = fused
        said.labels[few] = first_largest(fused, dim=0)
        said.heads[few] = first_largest(sure, dim=0)
        said.confidence[few] = sure.amax(0)
