"""Ctrl-C and SIGTERM as exceptions: `finally` blocks run, nothing half-written stays, and the next step is told."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

REPEAT = "repeat the command to resume"


class Interrupted(BaseException):
    """Ctrl-C.  Not a KeyboardInterrupt, which the parser of the command line turns into an exit without a word."""


class Terminated(BaseException):
    """SIGTERM."""


def listen() -> None:
    """Turn both signals into exceptions; one that is ignored (`nohup`, a job in the background) stays so."""
    for number, handler in ((signal.SIGINT, _on_interrupt), (signal.SIGTERM, _on_terminate)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


@contextmanager
def resumable() -> Iterator[None]:
    """Work that the same command resumes: who stops it is told so."""
    try:
        yield
    except (Interrupted, Terminated) as stop:
        raise type(stop)(REPEAT) from None


def _on_interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


def _on_terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
