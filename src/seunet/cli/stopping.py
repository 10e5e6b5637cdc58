"""Ctrl-C and SIGTERM as exceptions: `finally` blocks run, nothing half-written stays, and the next step is told."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
REPEAT = "repeat the command to resume"


class Interrupted(BaseException):
    """Ctrl-C.  Not a KeyboardInterrupt, which the parser of the command line turns into an exit without a word."""


class Terminated(BaseException):
    """SIGTERM."""


def listen() -> None:
    """Turn both signals into exceptions; one that is ignored (`nohup`, a job in the background) stays so."""
    for number, kind in ((signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, partial(_stop, kind))


def _stop(kind: type[BaseException], _signal: int, _frame: FrameType | None) -> NoReturn:
    raise kind


@contextmanager
def resumable() -> Iterator[None]:
    """Work that the same command resumes: who stops it is told so."""
    try:
        yield
    except (Interrupted, Terminated) as stop:
        raise type(stop)(REPEAT) from None
