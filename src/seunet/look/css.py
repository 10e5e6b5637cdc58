"""look.css as text, to be put into a page or served beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def look_css() -> str:
    """The style sheet: variables for colours, and how text, tables, pictures, buttons and fields look."""
    return (Path(__file__).parent / "look.css").read_text(encoding="utf-8")
