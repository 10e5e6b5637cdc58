"""What a protocol will cost, before it is started: one step and one prediction of each model, times all that is asked.

Hours of one core.  What depends on the machine is measured on it; how many pixels are seen is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from seunet.evaluation.predictors import pixels_seen
from seunet.evaluation.reproduce.protocol import Experiment, Protocol, Tiles, tile_numbers
from seunet.evaluation.run import open_windows
from seunet.evaluation.test_scales import TEST_SCALES
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.config import TrainingConfig
from seunet.training.loading import Sources
from seunet.training.loop import epochs_of
from seunet.training.new_model import make_model

PROBE_PX = 256
"""Side of the window that speeds are measured on: what a pixel costs hardly depends on it."""


class Cost(NamedTuple):
    """Of all seeds of a model, in core-seconds."""

    runs: int
    training: float
    measuring: float


class Pace(NamedTuple):
    """Core-seconds per pixel."""

    step: float
    prediction: float


def expected_costs(protocol: Protocol, experiments: Sequence[Experiment]) -> dict[str, Cost]:
    """By the name of the model."""
    paces: dict[str, Pace] = {}
    costs: dict[str, Cost] = {}
    for job in experiments:
        name, sources = job.entry.name, Sources(job.config.data, job.seed)
        if name not in paces:
            paces[name] = pace_of(make_model(job.config, sources.manifest))
        learnt, judged = training_pixels(job.config, sources)
        before = costs.get(name, Cost(0, 0.0, 0.0))
        costs[name] = Cost(
            before.runs + 1,
            before.training + learnt * paces[name].step + judged * paces[name].prediction,
            before.measuring + measured_pixels(protocol, job) * paces[name].prediction,
        )
    return costs


def pace_of(model: ScaleUNet, clock: Callable[[], float] = time.process_time) -> Pace:
    """From the second of two steps and of two predictions: the first ones compile."""
    images = torch.rand(1, model.in_channels, PROBE_PX, PROBE_PX)
    target = torch.zeros(1, PROBE_PX, PROBE_PX, dtype=torch.long)

    def step() -> None:
        model.train()
        model.loss(model(images), target).backward()  # type: ignore[no-untyped-call]

    def prediction() -> None:
        model.eval()
        with torch.inference_mode():
            model(images)

    return Pace(*(_second_time(work, clock) / PROBE_PX**2 for work in (step, prediction)))


def _second_time(work: Callable[[], None], clock: Callable[[], float]) -> float:
    work()
    start = clock()
    work()
    return clock() - start


def training_pixels(config: TrainingConfig, sources: Sources) -> tuple[int, int]:
    """Pixels of all steps, and of all validations."""
    window = sources.manifest.windows.size_px
    side = config.data.augmentation.crop_px or window
    steps = sources.training.epoch_windows // config.recipe.batch
    epochs, every = epochs_of(config, steps)
    held_out = sources.validation
    judged = 0 if held_out is None else len(held_out) * window**2 * (epochs // every)
    return steps * epochs * config.recipe.batch * side**2, judged


def measured_pixels(protocol: Protocol, job: Experiment) -> int:
    """Pixels that the network sees in evaluation, windows of other sizes, and equivariance errors."""
    by_way = {way: protocol.way_scales.get(way, TEST_SCALES) for way in job.ways}
    windows, size = _windows(protocol, protocol.tiles)
    seen = windows * sum(pixels_seen(way, scale, size) for way, scales in by_way.items() for scale in scales)
    for side in protocol.window_sizes_px:
        count, _ = _windows(protocol, Tiles(size_px=side, stride_px=side))
        seen += count * side**2
    if job.entry.equivariance:
        windows, size = _windows(protocol, protocol.equivariance_tiles)
        seen += windows * sum(pixels_seen("blind", scale, size) for scale in TEST_SCALES)
    return seen


def _windows(protocol: Protocol, tiles: Tiles | None) -> tuple[int, int]:
    """How many, and their side."""
    windows = open_windows(protocol.data, protocol.split, None, tile_numbers(tiles))
    return len(windows), windows.size_px
