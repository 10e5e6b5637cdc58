r"""The scale at which a signature is most at home: templates of what tissue looks like at each scale.

For signatures x at relative scale s, x ~ N(μ(log₂ s), Σ(log₂ s)).  μ is a local linear regression on log₂ s, so
neighbouring scales share what they know (rescaling shifts a signature along log σ, it does not change it); Σ is
estimated around a few knots and its inverse and determinant interpolated between them.  With

    q(s) = (x − μ)ᵀ Σ⁻¹ (x − μ)      how far the signature is from tissue at that scale,
    p(s) ∝ exp(−(q(s) + ln |Σ|) / 2T)   flattened by T: the features of one image err together,

the estimate is the mean of log₂ s under p, and q at the estimate says whether this is tissue at all.

Where the heads of a network have been asked as well (`heads.py`), there are templates of what they say at each scale,
and the two opinions are multiplied.  Texture then counts by a distribution with long tails,

    −2 ln p(s) ∝ (ν + F) ln(1 + q(s)/ν) + ln |Σ|,

so that it has the less to say the less it is like any texture that was seen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

GRID: Final = np.linspace(-2.75, 2.75, 111)
"""log₂ s at which there are templates: s from 0.15 to 6.7."""

KNOTS: Final = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
TEMPLATE_WIDTH: Final = 0.2
KNOT_WIDTH: Final = 0.7
RIDGE: Final = 0.01
TEMPERATURE: Final = 4.0
TEXTURE_TEMPERATURE: Final = 8.0
HEADS_TEMPERATURE: Final = 2.0
"""Of the two opinions where there are two."""
TAIL: Final = 20.0
"""ν of the texture's long tails."""


class Templates(NamedTuple):
    """Signatures are centred and divided by `spread` [F] first; `means` [G, F], `precisions` [K, F, F]."""

    center: FloatArray
    spread: FloatArray
    means: FloatArray
    precisions: FloatArray
    log_determinants: FloatArray


class Reading(NamedTuple):
    """What the templates say of one signature."""

    log2_scale: float
    deviation: float
    """Standard deviation of log₂ s under p."""
    distance: float
    """q at the best scale: about the number of features for tissue, far more for other things."""


def fit_templates(signatures: FloatArray, log2_scales: FloatArray, weights: FloatArray) -> Templates:
    """From signatures [n, F] of known scale."""
    center, spread = signatures.mean(axis=0), signatures.std(axis=0) + 1e-6
    x = (signatures - center) / spread
    means = np.stack([_local_mean(x, log2_scales - place, weights) for place in GRID])
    residuals = x - _between(means, log2_scales)
    covariances = [_covariance(residuals, log2_scales - knot, weights) for knot in KNOTS]
    return Templates(
        center,
        spread,
        means,
        np.stack([np.linalg.inv(each) for each in covariances]),
        np.array([np.linalg.slogdet(each)[1] for each in covariances]),
    )


def read_scale(templates: Templates, signature: FloatArray) -> Reading:
    """The scale of one signature [F]."""
    distances, determinants = _distances(templates, signature)
    return _reading((distances + determinants) / (2 * TEMPERATURE), distances)


def read_both(texture: Templates, signature: FloatArray, heads: Templates, profile: FloatArray) -> Reading:
    """The scale by the texture and by the heads of a network; the distance is that of the heads."""
    far, determinants = _distances(texture, signature)
    tailed = (TAIL + len(signature)) * np.log1p(far / TAIL)
    distances, own = _distances(heads, profile)
    cost = (tailed + determinants) / (2 * TEXTURE_TEMPERATURE) + (distances + own) / (2 * HEADS_TEMPERATURE)
    return _reading(cost, distances)


def _distances(templates: Templates, signature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """q and ln |Σ| at each scale of the grid."""
    away = (signature - templates.center) / templates.spread - templates.means
    by_knot = (away @ templates.precisions * away).sum(axis=2)
    share = np.stack([np.interp(GRID, KNOTS, row) for row in np.eye(len(KNOTS))])
    return (share * by_knot).sum(axis=0), templates.log_determinants @ share


def _reading(cost: FloatArray, distances: FloatArray) -> Reading:
    likely = np.exp(cost.min() - cost)
    likely /= likely.sum()
    mean = float(likely @ GRID)
    variance = max(float(likely @ GRID**2) - mean**2, 0.0)
    return Reading(mean, variance**0.5, float(np.interp(mean, GRID, distances)))


def _local_mean(x: FloatArray, offsets: FloatArray, weights: FloatArray) -> FloatArray:
    """The value at offset 0 of a weighted line through x against the offsets."""
    near = weights * np.exp(-0.5 * (offsets / TEMPLATE_WIDTH) ** 2)
    design = np.stack([np.ones_like(offsets), offsets], axis=1)
    normal = (design * near[:, None]).T @ design
    normal[1, 1] += 1e-6 * near.sum() + 1e-12
    value: FloatArray = np.linalg.solve(normal, (design * near[:, None]).T @ x)[0].astype(np.float64)
    return value


def _covariance(residuals: FloatArray, offsets: FloatArray, weights: FloatArray) -> FloatArray:
    near = weights * np.exp(-0.5 * (offsets / KNOT_WIDTH) ** 2)
    covariance: FloatArray = (residuals * near[:, None]).T @ residuals / near.sum()
    return covariance + RIDGE * np.eye(len(covariance))


def _between(means: FloatArray, log2_scales: FloatArray) -> FloatArray:
    """The templates at any scale, interpolated: [n, F]."""
    place = np.clip((log2_scales - GRID[0]) / (GRID[1] - GRID[0]), 0, len(GRID) - 1.001)
    low = place.astype(int)
    share = (place - low)[:, None]
    result: FloatArray = (1 - share) * means[low] + share * means[low + 1]
    return result
