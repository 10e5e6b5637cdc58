"""A labelled image does not depend on tiles, threads, or how often the run was killed."""

from __future__ import annotations

import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seunet.errors import InputError, RegionError, StorageError
from seunet.images import ArrayImage, RgbArray
from seunet.results import HEADS, LABELS, NOT_ANALYSED, PROBABILITIES, Plane
from seunet.segmentation.label_image import Labelled, LabelSettings, label_image
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
from seunet.storage import LEDGER
from tests.support.networks import calm_model, picture

AS_IS = ReadingPlan(0, 1.0, 1.0, None, 1.0, "")
SMALL = LabelSettings(tile_px=48, probabilities=True)


@pytest.fixture(scope="module")
def network() -> HeadwiseNetwork:
    return HeadwiseNetwork(calm_model(widths=(5, 5, 5)))


@pytest.fixture(scope="module")
def pixels() -> RgbArray:
    return picture(110, 131)


def files(folder: Path) -> dict[str, bytes]:
    """The planes."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.u8"))}


def labels_of(found: Labelled) -> np.ndarray:
    with found.planes.opened() as planes:
        return planes[LABELS].read(0, 0, *found.planes.size).copy()


def test_an_image_is_labelled_as_the_network_says(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    shown: list[tuple[int, int, str]] = []
    found = label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "a", SMALL, lambda *step: shown.append(step))
    whole = (Span(0, 110), Span(0, 131))
    expected = network.predict(pixels, whole, whole, (110, 131))
    assert np.array_equal(labels_of(found), expected.labels)
    with found.planes.opened() as planes:
        for number, chances in enumerate(expected.probabilities):
            kept = planes[PROBABILITIES.format(number)].read(0, 0, 110, 131)
            assert np.array_equal(kept, np.rint(chances * 255).astype(np.uint8))
        assert np.array_equal(planes[HEADS].read(0, 0, 110, 131), expected.heads + 1)
    assert found.pixels_by_class == tuple(np.bincount(expected.labels.ravel(), minlength=2))
    assert found.pixels_by_head == tuple(np.bincount(expected.heads.ravel(), minlength=5))
    assert np.isclose(found.mean_confidence, expected.confidence.mean())
    assert (found.tiles, found.tiles_before, found.gaps, found.notes) == (9, 0, (), ())
    assert shown[0] == (0, 110 * 131, "segmenting")
    assert shown[-1] == (110 * 131, 110 * 131, "segmenting")
    assert min(found.seconds.reading, found.seconds.network, found.seconds.writing) > 0


def test_progress_moves_within_a_tile_and_never_back(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray
) -> None:
    tall, shown = np.tile(pixels, (10, 1, 1)), []
    settings = LabelSettings(tile_px=2048, tissue=False)
    found = label_image(ArrayImage(tall), network, AS_IS, tmp_path / "a", settings, lambda *step: shown.append(step[0]))
    assert found.tiles == 1
    assert shown == sorted(set(shown))
    assert shown[-1] == 1100 * 131
    assert len(shown) == 1 + 5 * 2  # of each head, pieces of 768 rows: it is narrow


def test_tiles_threads_and_reading_ahead_change_no_byte(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray
) -> None:
    results = []
    for number, (tile_px, threads, ahead) in enumerate([(None, 1, 1), (50, 2, 8), (64, 1, 3)]):
        torch.set_num_threads(threads)
        settings = LabelSettings(tile_px=tile_px, probabilities=True, read_ahead=ahead)
        label_image(ArrayImage(pixels), network, AS_IS, tmp_path / str(number), settings)
        results.append(files(tmp_path / str(number)))
    assert results[0] == results[1] == results[2]
    assert set(results[0]) == {"heads.u8", "labels.u8", "probabilities-0.u8", "probabilities-1.u8"}


def killed_at_call(number: int, *arguments: Any) -> bool:
    """Run `label_image` in a child that is killed in the middle of its write number `number`; whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; the child needs none
        child = os.fork()
    if child == 0:
        calls, put = iter(range(number)), os.pwrite

        def half_then_kill(file: int, data: memoryview, offset: int) -> int:
            if next(calls, None) is None:
                put(file, data[: len(data) // 2], offset)
                os.kill(os.getpid(), signal.SIGKILL)
            return put(file, data, offset)

        os.pwrite = half_then_kill  # type: ignore[assignment]
        try:
            label_image(*arguments)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_in_the_middle_of_any_write_and_run_again_the_bytes_are_the_same(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray
) -> None:
    image = ArrayImage(pixels)
    label_image(image, network, AS_IS, tmp_path / "unbroken", SMALL)
    # 110 rows are filled with the probability of glass first, then 4 planes × 48 rows a tile are written.
    for moment in (0, 60, 250, 700, 1100):
        folder = tmp_path / str(moment)
        assert killed_at_call(moment, image, network, AS_IS, folder, SMALL)
        assert killed_at_call(moment // 5, image, network, AS_IS, folder, SMALL)
        found = label_image(image, network, AS_IS, folder, SMALL)
        assert files(folder) == files(tmp_path / "unbroken")
        assert found.tiles_before >= (moment > 500)
        assert found.notes == ()
        assert sum(found.pixels_by_class) == 110 * 131


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_done_again(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray, cut: int) -> None:
    first = label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL)
    before, ledger = files(tmp_path), tmp_path / LEDGER
    ledger.write_bytes(ledger.read_bytes()[:-cut])
    again = label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL)
    assert (again.tiles_before, again.tiles) == (8, 9)
    assert files(tmp_path) == before
    assert again.pixels_by_class == first.pixels_by_class
    assert len(ledger.read_text().splitlines()) == 10


def test_what_is_done_is_not_done_again_and_an_interrupt_loses_nothing(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray
) -> None:
    def interrupt(done: int, total: int, text: str) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL, interrupt)
    again = label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL)
    assert 3 <= again.tiles_before < 9
    label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "whole", SMALL)
    assert files(tmp_path) == files(tmp_path / "whole")
    assert label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL).tiles_before == 9


def test_a_changed_setting_starts_afresh_and_says_so(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray
) -> None:
    label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL)
    found = label_image(ArrayImage(pixels), network, AS_IS, tmp_path, LabelSettings(tile_px=64))
    assert found.tiles_before == 0
    assert len(found.notes) == 1
    assert found.notes[0].endswith("starts afresh; not as in the earlier run: settings, tile")
    assert set(files(tmp_path)) == {"heads.u8", "labels.u8"}
    other = label_image(
        ArrayImage(pixels), network, AS_IS, tmp_path, LabelSettings(tile_px=64), identity={"modified": 7}
    )
    assert other.notes[0].endswith("earlier run: image")
    (tmp_path / LEDGER).write_text("nonsense\n")
    assert "cannot be read" in label_image(ArrayImage(pixels), network, AS_IS, tmp_path, SMALL).notes[0]


class Torn(ArrayImage):
    """Cannot be read at one pixel, or at some."""

    columns: tuple[int, ...] = (300,)

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        for column in self.columns:
            if x <= column < x + width_px and y <= 40 < y + height_px:
                raise RegionError(f"picture.tif: tile at ({column}, 40) is damaged")
        return super().read(level, x, y, width_px, height_px)


def test_a_damaged_part_is_marked_and_listed_and_the_rest_is_done(tmp_path: Path, network: HeadwiseNetwork) -> None:
    wide = picture(70, 560)
    results = []
    for number, tile_px in enumerate((64, 200)):
        settings = LabelSettings(tile_px=tile_px, probabilities=True)
        found = label_image(Torn(wide), network, AS_IS, tmp_path / str(number), settings)
        marked = labels_of(found) == NOT_ANALYSED
        assert marked[:, 256:512].all()
        assert not marked[:, :256].any()
        assert not marked[:, 512:].any()
        assert sum(gap.rows.length * gap.columns.length for gap in found.gaps) == 70 * 256
        assert {gap.reason for gap in found.gaps} == {"picture.tif: tile at (300, 40) is damaged"}
        assert sum(found.pixels_by_class) == 70 * (560 - 256)
        assert found.pixels_unread == 70 * 256
        results.append(files(tmp_path / str(number)))
    assert results[0] == results[1]
    with pytest.raises(InputError, match="tile at \\(300, 40\\) is damaged"):
        label_image(Torn(wide), network, AS_IS, tmp_path / "strict", LabelSettings(tile_px=64, strict=True))


def test_what_could_not_be_read_is_counted_once_where_two_gaps_overlap(
    tmp_path: Path, network: HeadwiseNetwork
) -> None:
    torn = Torn(picture(50, 300))
    torn.columns = (100, 290)
    found = label_image(
        torn, network, ReadingPlan(0, 1.5, 1.0, None, 1 / 1.5, ""), tmp_path, LabelSettings(tissue=False)
    )
    # Enlarged pixels at the border of two damaged cells are made of both.
    assert sum(gap.rows.length * gap.columns.length for gap in found.gaps) > 75 * 450
    assert (found.pixels_unread, sum(found.pixels_by_class)) == (75 * 450, 0)
    assert (labels_of(found) == NOT_ANALYSED).all()


def test_glass_is_not_looked_at_and_has_its_own_label(
    tmp_path: Path, network: HeadwiseNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seunet.images.overview.SMALL_PX", 1000)
    slide = np.full((400, 600, 3), 244, dtype=np.uint8)
    slide[70:180, 330:460] = picture(110, 130)
    whole = (Span(0, 400), Span(0, 600))
    expected = network.predict(slide, whole, whole, (400, 600))
    results = []
    for number, tile_px in enumerate((100, 300)):
        settings = LabelSettings(tile_px=tile_px, probabilities=True, background=1)
        found = label_image(ArrayImage(slide), network, AS_IS, tmp_path / str(number), settings)
        assert found.tissue_share < 0.4
        labels = labels_of(found)
        assert (labels[260:] == 1).all()
        assert (labels[:, :200] == 1).all()
        assert np.array_equal(labels[70:180, 330:460], expected.labels[70:180, 330:460])
        results.append(files(tmp_path / str(number)))
        lines = (tmp_path / str(number) / LEDGER).read_text().splitlines()
        assert all(json.loads(line)["rows"][1] <= 256 for line in lines[1:])
    assert results[0] == results[1]
    empty = label_image(ArrayImage(np.full_like(slide, 244)), network, AS_IS, tmp_path / "empty", LabelSettings())
    assert (empty.tiles, empty.tissue_share, empty.pixels_by_class, empty.pixels_by_head) == (0, 0, (0, 0), (0,) * 5)
    everything = label_image(ArrayImage(slide), network, AS_IS, tmp_path / "all", LabelSettings(tissue=False))
    assert sum(everything.pixels_by_class) == 400 * 600


def test_the_working_raster_is_what_is_labelled(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    halved = ReadingPlan(0, 0.5, 1.0, 2.0, 2.0, "")
    one = label_image(ArrayImage(pixels), network, halved, tmp_path / "1", LabelSettings(tile_px=20))
    assert one.planes.size == (55, 66)
    label_image(ArrayImage(pixels), network, halved, tmp_path / "2", LabelSettings())
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_a_full_disk_ends_the_run_and_what_was_written_counts(
    tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "whole", SMALL)
    writes = iter(range(14))

    def full(self: Plane, y: int, x: int, block: np.ndarray) -> None:
        if next(writes, None) is None:
            raise StorageError("labels.u8: cannot be used (No space left on device); free space")
        write(self, y, x, block)

    write = Plane.write
    with monkeypatch.context() as patched:
        patched.setattr(Plane, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "full", SMALL)
    again = label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "full", SMALL)
    assert again.tiles_before == 3
    assert again.pixels_by_class == whole.pixels_by_class
    assert files(tmp_path / "full") == files(tmp_path / "whole")


def test_a_fault_of_the_reader_is_raised(tmp_path: Path, network: HeadwiseNetwork, pixels: RgbArray) -> None:
    class Broken(ArrayImage):
        def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
            raise InputError("slide.svs: is gone; put it back")

    with pytest.raises(InputError, match=r"slide\.svs: is gone"):
        label_image(Broken(pixels), network, AS_IS, tmp_path, SMALL)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        label_image(ArrayImage(pixels), network, AS_IS, tmp_path / "file", SMALL)
