"""`seunet warm-up`: call, print."""

from __future__ import annotations

import time


def warm_up() -> None:
    """Compile what the first `segment` would wait for; what is compiled already is left alone.

    Example: seunet warm-up
    """
    from seunet.segmentation.warm_up import warm_up as compile_everything

    began = time.monotonic()
    folder = compile_everything()
    print(f"compiled functions are in {folder} ({time.monotonic() - began:.0f} s)")
