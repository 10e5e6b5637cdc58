"""Where processor time goes: functions by name, each without what is counted by another one, in whatever thread."""

from __future__ import annotations

import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def counted(stages: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, float]]:
    """Seconds of CPU that threads spend in functions (`module:name`, `module:Class.name`) while the block runs.

    Time that a function waits is not counted, nor that of another stage that it calls.
    """
    seconds: dict[str, float] = defaultdict(float)
    before: list[tuple[Any, str, Any]] = []
    for stage, places in stages.items():
        for place in places:
            module, _, path = place.partition(":")
            *outer, name = path.split(".")
            owner: Any = importlib.import_module(module)
            for each in outer:
                owner = getattr(owner, each)
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, _timed(getattr(owner, name), stage, seconds))
    try:
        yield seconds
    finally:
        for owner, name, function in reversed(before):
            setattr(owner, name, function)


_within = threading.local()


def _timed(function: Callable[..., Any], stage: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def timed(*arguments: Any, **options: Any) -> Any:
        stack: list[float] = _within.__dict__.setdefault("stack", [])
        stack.append(0.0)
        began = time.thread_time()
        try:
            return function(*arguments, **options)
        finally:
            spent = time.thread_time() - began
            seconds[stage] += spent - stack.pop()
            if stack:
                stack[-1] += spent

    return timed
