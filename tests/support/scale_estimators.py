"""Estimators for tests: one that takes made tissue for tissue, one that says what it is told to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from seunet.scale import Region, ScaleEstimate, ScaleEstimator, shipped_estimator, unknown


def trusting_estimator() -> ScaleEstimator:
    """The shipped one, which no distance from the templates disturbs."""
    shipped = shipped_estimator()
    return ScaleEstimator(shipped.templates, shipped.limits._replace(distance=1e9), shipped.mpp)


@dataclass(frozen=True)
class SaysScale(ScaleEstimator):
    """Says that structures are `says` times as large, give or take a fifth; 0 is "don't know"."""

    says: float = 1.0

    def estimate(self, regions: Iterable[Region], mpp: float | None = None) -> ScaleEstimate:
        if not list(regions) or not self.says:
            return unknown("no tissue")
        return ScaleEstimate(self.says, self.says / 1.2, self.says * 1.2, self.mpp / self.says, True, "as told")


def saying(scale: float) -> SaysScale:
    """An estimator of that opinion."""
    shipped = shipped_estimator()
    return SaysScale(shipped.templates, shipped.limits, shipped.mpp, says=scale)
