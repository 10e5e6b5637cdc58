"""Side by side in one run: a busy spell of the machine spoils a few rounds, not one candidate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each candidate in every round; each round runs all of them once, after one to warm up."""
    milliseconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            if turn:
                milliseconds[name].append(1000 * (time.perf_counter() - start))
    return milliseconds


def summary(milliseconds: Mapping[str, list[float]], base: str) -> dict[str, dict[str, float]]:
    """Fastest and median of each candidate, and both relative to `base`."""
    fastest, median = min(milliseconds[base]), statistics.median(milliseconds[base])
    return {
        name: {
            "fastest_ms": round(min(times), 2),
            "median_ms": round(statistics.median(times), 2),
            "fastest_ratio": round(min(times) / fastest, 3),
            "median_ratio": round(statistics.median(times) / median, 3),
        }
        for name, times in milliseconds.items()
    }
