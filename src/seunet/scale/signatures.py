r"""How the structure of an image is spread over σ: what shifts along log σ when the image is rescaled.

On the optical density of red light (what haematoxylin takes, eosin hardly) and at each σ of a ladder with steps of √2,
the Gaussian scale space L(·; σ) gives scale-normalised gradients σ∇L and Laplacians σ²∇²L.  If f is s times as large,
f′(x) = f(x/s), its normalised derivatives at sσ are those of f at σ: every statistic of them moves by log s along
log σ (Lindeberg, IJCV 1998).  Energies alone leave 31 % of the images off by more than 25 %; how sparse the
derivatives are (third and fourth moments) says where nuclei begin and end, and most of the answer comes from it
(docs/decisions/0050-scale-from-pixels.md).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.maths.gaussian import full_taps, half_taps

FloatArray = NDArray[np.float64]

LEVELS: Final = 5
"""Of the pyramid; each has half the pixels per side of the one before."""

MOMENTS: Final = (
    "value",
    "value²",
    "gradient²",
    "gradient⁴",
    "|laplacian|",
    "laplacian²",
    "laplacian³",
    "laplacian⁴",
)
"""What is averaged over the tissue at each σ."""

MAX_DENSITY: Final = 2.5
FLAT_ENERGY: Final = 1e-6
"""Mean squared Laplacian of optical density below which there is nothing to see: less than a grey level."""

_REACH: Final = 4.0
"""Standard deviations after which a filter is cut."""


class Rung(NamedTuple):
    """One σ of the ladder, at its level of the pyramid and in that level's pixels."""

    level: int
    sigma: float
    """Of the smoothing since the full image."""
    added: float
    """Of the smoothing since this level's image, which already has some: variances add."""


LADDER: Final = (
    *(Rung(0, math.sqrt(variance), math.sqrt(variance)) for variance in (0.25, 0.5, 1.0, 2.0)),
    *(
        Rung(level, math.sqrt(variance), math.sqrt(variance - 0.5))
        for level in range(1, LEVELS)
        for variance in (1.0, 2.0)
    ),
)
"""σ = ½, 1/√2, 1, √2 on the image itself, then 1 and √2 on each halved level, in all ½ … 16√2 pixels.

A level is every second pixel of the last smoothed one of the level before, whose variance of 2 becomes ½.
"""

SIGNATURE_LENGTH: Final = 6 * len(LADDER) + len(LADDER[::3])


@lru_cache(maxsize=32)
def smoothing_taps(sigma: float) -> NDArray[np.float32]:
    """The discrete analogue of the Gaussian, which is right for small σ too: [2R + 1]."""
    radius = math.ceil(_REACH * sigma)
    taps = full_taps(half_taps(torch.tensor([sigma], dtype=torch.float64), [radius], 0, "discrete"))
    return taps[0, 0].numpy().astype(np.float32)


def red_density() -> NDArray[np.float32]:
    """−ln of the light for each 8-bit value, [256]; finite in the dark, where a camera sees only noise."""
    light = (np.arange(256) + 1) / 256
    return np.minimum(-np.log(light), MAX_DENSITY).astype(np.float32)


def signature(moments: FloatArray) -> FloatArray:
    """Features of averaged moments [σ, moments]: logarithms of energies, and ratios that no gain changes.

    Energies are relative to the mean energy of the fine Laplacians: a stronger stain multiplies all of them.
    """
    value, square, gradient2, gradient4, modulus, laplacian2, laplacian3, laplacian4 = moments.T
    energy, curvature = _log(gradient2), _log(laplacian2)
    gain = curvature[1:7].mean()
    spread = _log(square[::3] - value[::3] ** 2)
    return np.concatenate(
        [
            energy - gain,
            curvature - gain,
            spread - gain,
            laplacian3 / np.maximum(laplacian2, 1e-12) ** 1.5,
            _log(laplacian4) - 2 * curvature,
            _log(gradient4) - 2 * energy,
            2 * _log(modulus) - curvature,
        ]
    )


def is_flat(moments: FloatArray) -> bool:
    """Whether there is nothing but noise of the last bit in the image."""
    return bool(moments[1:7, MOMENTS.index("laplacian²")].mean() < FLAT_ENERGY)


def _log(values: FloatArray) -> FloatArray:
    return np.log(np.maximum(values, 1e-14))
