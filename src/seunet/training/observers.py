"""What a run tells those who watch it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.batches import Sources


class StepReport(NamedTuple):
    """What a step came to."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    head_losses: list[float]
    head_weights: list[float]
    learning_rate: float
    windows_per_second: float


class ValidationReport(NamedTuple):
    """What the held-out images said after `step` steps."""

    step: int
    epoch: int
    iou: float
    best_iou: float
    ious: dict[str, Any]
    sigmas: list[list[float]] | None


class Observer(Protocol):
    """Someone who watches a run: a progress bar, TensorBoard."""

    def on_step(self, report: StepReport) -> None: ...

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None: ...


class Outcome(NamedTuple):
    """How a run ended: `finished`, or stopped after `step` steps and ready to be resumed."""

    finished: bool
    step: int
    total_steps: int
    best_iou: float | None
