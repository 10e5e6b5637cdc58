"""How far a verb has come: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

from seunet.progress import Progress, silent

PROGRESS: Final = typer.Option(True, "--progress/--no-progress", help="Show progress.")
LINE_SECONDS = 30.0
"""How often a line is printed for one and the same piece of work where there is no terminal to draw a bar on."""


@contextmanager
def progress_of(show: bool, timed: bool = False, every_text: bool = True, name: str = "") -> Iterator[Progress]:
    """What to call with (done, total, text); it shows nothing on request.

    `timed` work is shown as its share and the time left; other work, whose items are few and alike, by its count.
    Without `every_text` a new text alone is no reason for a new line where there is no terminal.  `name` stands before
    every text.
    """
    named = f"{name}: " if name else ""
    if not show:
        yield silent
    elif not sys.stderr.isatty():
        lines = _TimedLines(every_text, named)
        yield lines if timed or not every_text else lines.count
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        count = TaskProgressColumn(show_speed=True) if timed else MofNCompleteColumn()
        columns = (BarColumn(), count, TimeRemainingColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=120) as bar:
            task = bar.add_task(f"{named}starting", total=None)
            yield lambda done, total, text: bar.update(task, completed=done, total=total, description=f"{named}{text}")


class _TimedLines:
    """A line for every piece of work, and one every half minute; or the latter and the last alone."""

    def __init__(self, every_text: bool, named: str = "") -> None:
        self._named, self._start = named, time.monotonic()
        self._printed, self._text = 0.0 if every_text else self._start, ""
        self._first: int | None = None
        self._every_text = every_text

    def count(self, done: int, total: int, text: str) -> None:
        print(f"[{done}/{total}] {text}", file=sys.stderr)

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first, self._start = done, now
        new = text != self._text if self._every_text else done == total
        if not new and now - self._printed < LINE_SECONDS:
            return
        self._text, self._printed = text, now
        fresh = done - self._first
        seconds = (now - self._start) / fresh * (total - done) if fresh and done < total else None
        left = "" if seconds is None else f"  {duration(seconds)} left"
        # A slide of glass has nothing to do.
        share = f"{done / total if total else 1.0:4.0%}" if self._every_text else f"{done}/{total}"
        print(f"[{share}] {self._named}{text}{left}", file=sys.stderr)


def duration(seconds: float) -> str:
    """
    >>> [duration(seconds) for seconds in (12, 340, 8000)]
    ['12 s', '6 min', '2 h 13 min']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
