"""What the paper reports (Yang, Dasmahapatra, Mahmoodi, tables 2 and 3): means over 17 scales."""

from __future__ import annotations

from typing import Final, NamedTuple


class PaperNumbers(NamedTuple):
    """Percent IoU by the name of a row, equivariance errors by the name of a model."""

    metric: str
    scores: dict[str, float]
    equivariance: dict[str, float]


_SCORES: Final = {
    "CNN": (54.94, 34.48),
    "SESN": (57.29, 35.36),
    "DISCO": (59.77, 40.51),
    "SEUNet, mean": (59.96, 40.51),
    "SEUNet, p_dist": (59.93, 42.10),
    "SEUNet, p_ens": (59.98, 42.43),
    "SEUNet, σ fixed, p_ens": (58.36, 41.45),
    "SEUNet, σ free, p_ens": (57.40, 39.02),
}
"""On MoNuSeg and on BCSS."""
_EQUIVARIANCE: Final = {"CNN": (0.64, 0.74), "SESN": (0.57, 0.72), "DISCO": (0.39, 0.61), "SEUNet": (0.26, 0.54)}


def _column(table: dict[str, tuple[float, float]], place: int) -> dict[str, float]:
    return {name: values[place] for name, values in table.items()}


PAPER: Final = {
    "monuseg": PaperNumbers("IoU", _column(_SCORES, 0), _column(_EQUIVARIANCE, 0)),
    "bcss": PaperNumbers("mIoU", _column(_SCORES, 1), _column(_EQUIVARIANCE, 1)),
}
