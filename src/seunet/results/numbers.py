"""How numbers are written in results."""

from __future__ import annotations


def short(value: float, decimals: int) -> str:
    """Rounded to so many decimals (one or more) and written with as few digits as that needs.

    >>> short(20.6875, 2), short(331.0, 2), short(0.5, 3)
    ('20.69', '331', '0.5')
    """
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")
