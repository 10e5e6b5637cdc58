"""A plane on disk against an array in memory."""

from pathlib import Path

import numpy as np
import pytest

from seunet.errors import StorageError
from seunet.images import ArrayImage
from seunet.results.label_plane import Plane


def test_blocks_written_and_read_equal_an_array(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    truth = np.zeros((37, 53), dtype=np.uint8)
    with Plane(tmp_path / "plane", 37, 53) as plane:
        for _ in range(60):
            height, width = random.integers(1, 20), random.choice([random.integers(1, 30), 53])
            y, x = random.integers(0, 37 - height + 1), random.integers(0, 53 - width + 1)
            block = random.integers(0, 256, (height, width), dtype=np.uint8)
            plane.write(y, x, block)
            truth[y : y + height, x : x + width] = block
        assert np.array_equal(plane.read(0, 0, 100, 100), truth)
        assert np.array_equal(plane.read(30, 50, 100, 100), truth[30:, 50:])
        plane.sync()
    with Plane(tmp_path / "plane", 37, 53) as again:
        assert np.array_equal(again.read(0, 0, 37, 53), truth)
        with pytest.raises(IndexError):
            again.write(36, 0, np.zeros((2, 53), dtype=np.uint8))


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be used"):
        Plane(tmp_path / "missing" / "plane", 4, 4)


def test_a_cut_beyond_the_image_is_white() -> None:
    pixels = np.zeros((4, 4, 3), dtype=np.uint8)
    part = ArrayImage(pixels).read(0, -1, 2, 3, 4)
    assert part.shape == (4, 3, 3)
    assert part[:2, 1:].sum() == 0
    assert (part[:, 0] == 255).all()
    assert (part[2:] == 255).all()
    assert (ArrayImage(pixels).read(0, 10, 10, 2, 2) == 255).all()
