"""A network whose heads are fused by what was learnt of them on held-out images."""

from __future__ import annotations

from typing import Any

from seunet.inference.heads import HeadwiseNetwork
from seunet.maths.fusion import CALIBRATED, Calibration
from seunet.models.skeleton import ScaleUNet


class CalibratedNetwork(HeadwiseNetwork):
    """As its base, with a `Calibration` for the fusion."""

    def __init__(self, model: ScaleUNet, calibration: Calibration, overlap_px: int | None = None) -> None:
        super().__init__(model, overlap_px=overlap_px)
        self.fusion = calibration  # type: ignore[assignment]  # `fuse` takes it where it takes a name
        self._calibration = calibration

    def identity(self) -> dict[str, Any]:
        """See `HeadwiseNetwork.identity`."""
        numbers = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._calibration._asdict().items()
        }
        return super().identity() | {"fusion": CALIBRATED, "calibration": numbers}
