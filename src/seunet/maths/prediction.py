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


def together(found: Tensor, fusion: Fusion, rim: int | None, rim_odds: float) -> Prediction:
    """Probabilities [heads, classes, height, width] as one prediction.

    Where `rim` is a class, the rim is told apart by its odds against the class before it, and counts as that class.
    """
    height, width = found.shape[2:]
    classes = found.shape[1] - (rim is not None)
    probabilities = torch.from_numpy(own_pages((classes, height, width), np.float32))
    labels, heads = (torch.empty(height, width, dtype=torch.uint8) for _ in range(2))
    certainty = torch.empty(height, width)
    on_rim = None if rim is None else torch.empty(height, width, dtype=torch.bool)
    for start in range(0, height, FUSED_ROWS):
        rows = slice(start, start + FUSED_ROWS)
        part = found[None, :, :, rows]
        if on_rim is not None and rim is not None:
            apart = fuse(part, fusion)[0]
            on_rim[rows] = apart[rim] > rim_odds * apart[rim - 1]
            part = without_rim(part, rim)
        fused = fuse(part, fusion)[0]
        probabilities[:, rows] = fused
        labels[rows] = first_largest(fused, dim=0)
        sure = confidence(part)[0]
        heads[rows] = first_largest(sure, dim=0)
        certainty[rows] = sure.amax(0)
    said = labels.numpy(), probabilities.numpy(), heads.numpy(), certainty.numpy()
    return Prediction(*said, None if on_rim is None else on_rim.numpy())
