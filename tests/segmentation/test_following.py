"""Planes that are read while they are written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seunet.errors import StorageError
from seunet.images import ArrayImage, RgbArray
from seunet.progress import silent
from seunet.results import LABELS, Labels
from seunet.segmentation import HeadwiseNetwork
from seunet.segmentation.label_image import LabelSettings, label_image
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.following import AbandonedError, Follower, RowsDone
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tiling import Tile
from tests.support.networks import calm_model

AS_IS = ReadingPlan(0, 1.0, 1.0, None, 1.0, "")


@pytest.fixture(scope="module")
def network() -> HeadwiseNetwork:
    return HeadwiseNetwork(calm_model(widths=(5, 5, 5)))


@pytest.fixture(scope="module")
def pixels() -> RgbArray:
    return np.random.default_rng(0).integers(0, 256, (150, 131, 3), dtype=np.uint8)


Make = Callable[[Mapping[str, Labels]], Any]


def labelled(folder: Path, network: HeadwiseNetwork, pixels: RgbArray, make: Make, progress: Any = silent) -> Any:
    """Label in small tiles what is followed; what was made, and the labels."""
    with Follower(make) as follower:
        settings = LabelSettings(tile_px=64)
        found = label_image(ArrayImage(pixels), network, AS_IS, folder, settings, progress, follow=follower.follow)
        made = follower.made()
    with found.planes.opened() as planes:
        return made, planes[LABELS].read(0, 0, *found.planes.size)


def test_rows_are_done_when_every_tile_that_has_them_is() -> None:
    left, right, below = (
        Tile(3, Span(10, 50), Span(0, 40)),
        Tile(4, Span(0, 50), Span(40, 80)),
        Tile(7, Span(60, 90), Span(0, 40)),
    )
    done = RowsDone(100, [left, right, below])
    seen = []
    for tile, row, rows in ((left, 30, 0), (left, 50, 0), (right, 20, 20), (right, 50, 60), (below, 70, 70)):
        done.note(tile, row)
        done.wait_for(rows)
        late = threading.Thread(target=lambda rows=rows: (done.wait_for(rows + 1), seen.append(rows)), daemon=True)
        late.start()
        late.join(0.02)
        assert late.is_alive()
        assert rows not in seen
    done.note(below, 90)
    done.wait_for(100)


def test_without_tiles_everything_is_there() -> None:
    RowsDone(100, []).wait_for(100)


def test_who_follows_reads_what_is_there_in_the_end(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    heights: list[int] = []

    def read(planes: Mapping[str, Labels]) -> list[RgbArray]:
        plane = planes[LABELS]
        bands = []
        for top in range(0, plane.height_px, 7):
            bands.append(plane.read(top, 0, 7, plane.width_px))
            heights.append(top)
        return bands

    def progress(done: int, total: int, text: str) -> None:
        if done > total * 0.7:
            deadline.wait(5)  # who follows is well beyond the first rows before the last tiles are computed
            early.append(max(heights, default=0))

    early: list[int] = []
    deadline = threading.Event()
    threading.Timer(0.5, deadline.set).start()
    bands, labels = labelled(tmp_path, network, pixels, read, progress)
    assert np.array_equal(np.concatenate(bands), labels)
    assert 0 < early[0] < 143


def test_a_fault_in_who_follows_ends_the_run(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    def full(planes: Mapping[str, Labels]) -> None:
        planes[LABELS].read(0, 0, 1, 1)
        raise StorageError("no space left")

    with pytest.raises(StorageError, match="no space left"):
        labelled(tmp_path, network, pixels, full)


def test_an_interrupt_ends_who_follows(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    ended: list[type[BaseException]] = []

    def waits(planes: Mapping[str, Labels]) -> None:
        try:
            planes[LABELS].read(149, 0, 1, 1)
        except BaseException as error:
            ended.append(type(error))
            raise

    def interrupt(done: int, total: int, text: str) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        labelled(tmp_path, network, pixels, waits, interrupt)
    assert ended == [AbandonedError]
