"""What the first view needs is made once, before anybody asks."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from seunet.viewer import find_shown, tiles
from seunet.viewer.items import Item
from seunet.viewer.readers import Readers
from seunet.viewer.tile_cache import TileCache
from tests.viewer.conftest import Made


def test_a_coarse_tile_is_the_mean_of_what_it_is_cut_out_of() -> None:
    random = np.random.default_rng(0)
    plane = random.integers(0, 256, (1101, 1303, 4), dtype=np.uint8)  # odd: the last pixel covers what is not there
    whole = tiles.Grid(1303, 1101)
    seen = np.zeros((551, 652, 4))
    for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
        size = whole.size(1, x, y)
        assert size is not None
        part = tiles.cut_out(plane, 1, x, y, size)
        seen[512 * y : 512 * y + size[1], 512 * x : 512 * x + size[0]] = part
    padded = np.pad(plane.astype(float), ((0, 1), (0, 1), (0, 0)))
    means = padded.reshape(551, 2, 652, 2, 4).mean(axis=(1, 3))
    assert np.abs(seen - means).max() <= 0.5


def test_tiles_from_afar_read_the_file_once(made: Made) -> None:
    reads = []

    class Counting(Readers):
        def read(self, path: Path, *place: int) -> tiles.RgbArray:
            reads.append(path.name)
            return super().read(path, *place)

    readers = Counting()
    item = Item(find_shown([str(made.out / "first")]).shown[0], readers, TileCache())
    try:
        item.prepare()
        assert reads == ["labels.tif"]
        assert all(item.tile("labels", halvings, 0, 0) is not None for halvings in (0, 1, 2))
        assert reads == ["labels.tif"]
    finally:
        readers.close()


def test_what_cannot_be_opened_does_not_stop_the_preparation(tmp_path: Path) -> None:
    (tmp_path / "broken.tif").write_bytes(b"II*\0 and nothing more")
    readers = Readers()
    item = Item(find_shown([str(tmp_path / "broken.tif")]).shown[0], readers, TileCache())
    item.prepare()
    assert "broken.tif" in item.facts()["error"]
    readers.close()


def test_two_who_ask_for_the_same_tile_get_one_that_was_made_once() -> None:
    cache, made = TileCache(), []

    def make() -> tuple[bytes, str]:
        made.append(1)
        time.sleep(0.1)
        return b"tile", "kind"

    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(cache.get(("key",), make))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [(b"tile", "kind")] * 4
    assert len(made) == 1


def test_a_tile_that_could_not_be_made_is_tried_again() -> None:
    cache = TileCache()

    def fail() -> tuple[bytes, str]:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        cache.get(("key",), fail)
    assert cache.get(("key",), lambda: (b"tile", "kind")) == (b"tile", "kind")
