"""How far a verb has come: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from seunet.progress import Progress

LINE_SECONDS = 30.0
"""How often a line is printed for one and the same piece of work where there is no terminal to draw a bar on."""


@contextmanager
def progress(show: bool, timed: bool = False) -> Iterator[Progress | None]:
    """What to call with (done, total, text); nothing on request.

    `timed` work is shown as its share and the time left; other work, whose items are few and alike, by its count.
    """
    if not show:
        yield None
    elif not sys.stderr.isatty():
        yield _TimedLines() if timed else lambda done, total, name: print(f"[{done}/{total}] {name}", file=sys.stderr)
    else:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        count = TaskProgressColumn(show_speed=True) if timed else MofNCompleteColumn()
        columns = (BarColumn(), count, TimeRemainingColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=120) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda done, total, text: bar.update(task, completed=done, total=total, description=text)


class _TimedLines:
    """A line for every piece of work, and one every half minute."""

    def __init__(self) -> None:
        self._start, self._printed, self._text = time.monotonic(), 0.0, ""
        self._first: int | None = None

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        self._first = done if self._first is None else self._first
        if text == self._text and now - self._printed < LINE_SECONDS:
            return
        self._text, self._printed = text, now
        fresh = done - self._first
        left = f"  {duration((now - self._start) / fresh * (total - done))} left" if fresh else ""
        print(f"[{done / total:4.0%}] {text}{left}", file=sys.stderr)


def duration(seconds: float) -> str:
    """
    >>> [duration(seconds) for seconds in (12, 340, 8000)]
    ['12 s', '6 min', '2 h 13 min']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
