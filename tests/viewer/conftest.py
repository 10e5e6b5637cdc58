"""A slide of 1200 × 1200 px with 144 discs and its result, not to be changed, and servers for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from seunet.viewer import find_shown
from support.viewed import grid_of_circles, made_result, made_slide
from tests.support.served import Served, serving

SIDE_PX = 1200


class Made(NamedTuple):
    slide: Path
    out: Path
    """Holds the results `first`, and `second`, in which the first row of discs is missing and one is new."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("viewed")
    circles = grid_of_circles(SIDE_PX)
    slide = made_slide(folder / "slides" / "slide.tif", SIDE_PX, circles)
    made_result(folder / "out" / "first", slide, SIDE_PX, circles)
    made_result(folder / "out" / "second", slide, SIDE_PX, [*circles[12:], (600.0, 600.0, 8.0)])
    return Made(slide, folder / "out")


@pytest.fixture(scope="session")
def served(made: Made) -> Iterator[Served]:
    """Both results, in a server of their own in this process."""
    with ExitStack() as stack:
        yield stack.enter_context(serving(find_shown([str(made.out)]).shown))
