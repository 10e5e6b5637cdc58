"""How good estimates of scale are, in the figures that are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def scores(errors: Sequence[float]) -> dict[str, float]:
    """Of errors in octaves: the median factor, and the shares within 25 % and within 2 ×."""
    size = np.abs(np.asarray(errors, dtype=np.float64))
    return {
        "count": len(size),
        "median_factor": round(float(2 ** np.median(size)), 3),
        "within_25_percent": round(float((size <= np.log2(1.25)).mean()), 4),
        "within_2_times": round(float((size <= 1).mean()), 4),
        "bias_factor": round(float(2 ** np.mean(errors)), 3),
    }
