"""How far a piece of work has come, told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""(done, total, text): how much is done, of how much in all, in one unit (images, windows, pixels), and what is next.

What it raises ends the work; what is finished by then is kept.
"""


def silent(_done: int, _total: int, _text: str) -> None:
    """Of who shows nothing."""
