"""How fast windows come, and whether a training step ever waits for them."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from seunet.data import FLIPS_AND_SHIFT, EpochSampler, WindowDataset
from seunet.models import create_model

BATCH = 20


def loader_figures(monuseg: Path) -> dict[str, Any]:
    """Windows a second in an epoch after the first, by workers; and the training step beside it."""
    windows = WindowDataset(monuseg, "train", augmentation=FLIPS_AND_SHIFT)
    rates = {str(workers): _rate(windows, workers) for workers in (0, 1, 2)}
    mapped = WindowDataset(monuseg, "train", augmentation=FLIPS_AND_SHIFT, cache_bytes=1)
    batch_seconds = BATCH / rates["1"]
    steps = {name: _step_seconds(name) for name in ("seunet", "unet")}
    return {
        "windows": len(windows),
        "windows_per_second_by_workers": rates,
        "windows_per_second_mapped_from_disk": _rate(mapped, 1),
        "seconds_per_batch_of_20_one_worker": round(batch_seconds, 3),
        "seconds_per_training_step_of_20": steps,
        "share_of_the_shortest_step": round(batch_seconds / min(steps.values()), 4),
    }


def _rate(windows: WindowDataset, workers: int) -> float:
    """The second and third epoch: images are decoded by then."""
    sampler = EpochSampler(len(windows), seed=0)
    loader = DataLoader(windows, batch_size=BATCH, sampler=sampler, num_workers=workers, persistent_workers=workers > 0)
    rates = []
    for epoch in range(3):
        sampler.epoch = epoch
        began = time.perf_counter()
        seen = sum(len(batch.number) for batch in loader)
        rates.append(seen / (time.perf_counter() - began))
    return round(max(rates[1:]), 1)


def _step_seconds(name: str) -> float:
    """Forward and backward of the paper's network on one window with all cores, times the batch."""
    torch.set_num_threads(os.cpu_count() or 1)
    model = create_model(name, classes=2)
    image, mask = torch.rand(1, 3, 400, 400), torch.randint(0, 2, (1, 400, 400))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        logits = model(image)
        loss = torch.nn.functional.cross_entropy(logits.mean(1), mask)
        torch.autograd.backward(loss)
        seconds.append(time.perf_counter() - began)
    return round(BATCH * statistics.median(seconds[1:]), 1)
