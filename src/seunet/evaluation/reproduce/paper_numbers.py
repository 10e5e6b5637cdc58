"""What the paper reports (Yang, Dasmahapatra, Mahmoodi, tables 2 and 3): means over 17 scales."""

from __future__ import annotations

from typing import Final, NamedTuple


class PaperNumbers(NamedTuple):
    """Percent IoU by the name of a row, equivariance errors by the name of a model."""

    metric: str
    scores: dict[str, float]
    equivariance: dict[str, float]


PAPER: Final = {
    "monuseg": PaperNumbers(
        "IoU",
        {
            "CNN": 54.94,
            "SESN": 57.29,
            "DISCO": 59.77,
            "SEUNet, mean": 59.96,
            "SEUNet, p_dist": 59.93,
            "SEUNet, p_ens": 59.98,
            "SEUNet, σ fixed, p_ens": 58.36,
            "SEUNet, σ free, p_ens": 57.40,
        },
        {"CNN": 0.64, "SESN": 0.57, "DISCO": 0.39, "SEUNet": 0.26},
    ),
    "bcss": PaperNumbers(
        "mIoU",
        {
            "CNN": 34.48,
            "SESN": 35.36,
            "DISCO": 40.51,
            "SEUNet, mean": 40.51,
            "SEUNet, p_dist": 42.10,
            "SEUNet, p_ens": 42.43,
            "SEUNet, σ fixed, p_ens": 41.45,
            "SEUNet, σ free, p_ens": 39.02,
        },
        {"CNN": 0.74, "SESN": 0.72, "DISCO": 0.61, "SEUNet": 0.54},
    ),
}
