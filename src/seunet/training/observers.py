"""What a run tells those who watch it, and what it costs: rate, time, memory, machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch

from seunet.memory import peak_bytes
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.loading import Sources


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


class TrainingOutcome(NamedTuple):
    """How a run ended: `finished`, or stopped after `step` steps and ready to be resumed."""

    finished: bool
    step: int
    total_steps: int
    best_iou: float | None


class Meter:
    """Counts windows against a clock."""

    def __init__(self, clock: Callable[[], float], device: torch.device) -> None:
        self._clock, self._device, self._start, self._windows = clock, device, clock(), 0
        self._cpu_start = time.process_time()

    def count(self, windows: int) -> None:
        self._windows += windows

    def windows_per_second(self) -> float:
        return self._windows / max(self._clock() - self._start, 1e-9)

    def readings(self) -> dict[str, float]:
        """Seconds on the clock and on the processors since the start, windows per second, and the highest memory."""
        return {
            "seconds": round(self._clock() - self._start, 2),
            "cpu_seconds": round(time.process_time() - self._cpu_start, 2),
            "windows_per_second": round(self.windows_per_second(), 3),
            "peak_memory_mib": round(peak_memory_bytes(self._device) / 2**20, 1),
        }

    def machine(self, processes: int) -> dict[str, Any]:
        """What it runs on."""
        return {"device": self._device.type, "processes": processes, **machine_facts()}


def machine_facts() -> dict[str, Any]:
    """What a time or a peak of memory was measured on."""
    return {
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "torch": torch.__version__,
    }


def peak_memory_bytes(device: torch.device) -> int:
    """The most that was ever held: by the process, or on its GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return peak_bytes()
