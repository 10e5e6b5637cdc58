"""The overlay: what lies where, in which colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.errors import InputError
from seunet.results.find_objects import Tally, objects
from seunet.results.pictures import legend
from seunet.results.pictures.legend import code_shares, scale_bar
from seunet.results.pictures.overlay import NumberedObjects, legend_lines, overlay_picture, write_overlay
from seunet.results.write import write_results
from support.planes import ArrayPlane, Codes, discs, nuclei_frame, random_codes

YELLOW = np.array(nuclei_frame().class_colors[1])


def drawn(path: Path, thumbnail: np.ndarray, codes: Codes) -> np.ndarray:
    tally, plane = Tally(), ArrayPlane(codes)
    numbered = NumberedObjects(plane, *thumbnail.shape[:2])
    list(numbered.passing(objects(plane, nuclei_frame(), tally=tally)))
    write_overlay(path, overlay_picture(thumbnail, plane, nuclei_frame(), tally, numbered))
    with Image.open(path) as image:
        return np.asarray(image).astype(int)


def test_outlines_have_the_colour_of_the_class_and_the_inside_is_tinted(tmp_path: Path) -> None:
    codes = discs(600, 600, [(300, 200, 50)])
    codes[500:560, 500:560] = 255
    picture = drawn(tmp_path / "overlay.png", np.full((600, 600, 3), 100, dtype=np.uint8), codes)
    assert picture.shape[1] == 600
    assert picture.shape[0] > 640  # the legend
    assert (picture[300, 150] == YELLOW).all()  # the leftmost pixel of the disc
    assert (picture[300, 200] == np.rint(100 + 0.35 * (YELLOW - 100))).all()
    assert (picture[10, 10] == 100).all()
    hatched = picture[500:560, 500:560].reshape(-1, 3)
    assert {tuple(color) for color in hatched.tolist()} == {(255, 255, 255), (150, 150, 150)}
    assert (picture[600:] == YELLOW).all(axis=2).sum() > 100  # the legend has the colour


@pytest.mark.parametrize("side_px", [300, 150])
def test_the_line_between_nuclei_that_were_parted_is_drawn(tmp_path: Path, side_px: int) -> None:
    codes = discs(300, 300, [(150, 110, 45), (150, 190, 45)])
    assert (codes[150, 105:196] == 1).all()  # one object for the classes, two for the splitting
    picture = drawn(tmp_path / "overlay.png", np.full((side_px, side_px, 3), 100, dtype=np.uint8), codes)
    line = (picture[side_px // 2, :side_px] == YELLOW).all(axis=1)
    middle = side_px // 2
    assert line[middle - 3 : middle + 4].sum() == 2  # the last pixel of the one and the first of the other
    assert line.sum() == 4  # and the outer edges
    assert not (picture[side_px // 2, side_px // 3] == YELLOW).all()


@pytest.mark.parametrize("size", [(61, 47), (30, 20), (100, 90)])
def test_a_picture_shows_the_object_at_the_centre_of_each_pixel(size: tuple[int, int]) -> None:
    codes = random_codes(np.random.default_rng(3), 61, 47)
    found = list(objects(ArrayPlane(codes), nuclei_frame()))
    whole = np.zeros(codes.shape, dtype=int)
    for number, one in enumerate(found, start=1):
        for row, start, end in one.runs.T:
            whole[row, start:end] = number
    numbered = NumberedObjects(ArrayPlane(codes), *size)
    assert [one.runs.tolist() for one in numbered.passing(iter(found))] == [one.runs.tolist() for one in found]
    rows, columns = (((np.arange(n) + 0.5) * full / n).astype(int) for n, full in zip(size, (61, 47), strict=True))
    assert np.array_equal(numbered.numbers, whole[np.ix_(rows, columns)])


def test_a_much_smaller_thumbnail_is_tinted_by_the_share_of_each_pixel(tmp_path: Path) -> None:
    codes = np.zeros((1000, 1000), dtype=np.uint8)
    codes[:500:2] = 1
    picture = drawn(tmp_path / "overlay.png", np.full((100, 100, 3), 100, dtype=np.uint8), codes)
    assert np.abs(picture[20, 20] - (100 + 0.35 * (YELLOW - 100))).max() <= 1
    assert (picture[80, 20] == 100).all()
    assert picture.shape[1] == legend.LEGEND_PX


@pytest.mark.parametrize("size", [(30, 41), (61, 47), (7, 100), (100, 120)])
def test_shares_are_the_means_over_the_pixels_below_and_add_up(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = random_codes(np.random.default_rng(1), 61, 47)
    codes[5:9, 5:9] = 255
    found = code_shares(ArrayPlane(codes), (0, 1, 2, 255), *size)
    assert found.shape == (4, *size)
    assert found.sum(axis=0) == pytest.approx(1)
    rows, columns = min(size[0], 61), min(size[1], 47)
    row, column = size[0] // 3, size[1] // 2
    r, c = row * rows // size[0], column * columns // size[1]
    block = codes[r * 61 // rows : (r + 1) * 61 // rows, c * 47 // columns : (c + 1) * 47 // columns]
    assert found[:, row, column] == pytest.approx([(block == code).mean() for code in (0, 1, 2, 255)])
    monkeypatch.setattr(legend, "BAND_PIXELS", 100)
    assert np.array_equal(code_shares(ArrayPlane(codes), (0, 1, 2, 255), *size), found)


def test_the_scale_bar_is_a_round_length_within_a_quarter_of_the_width() -> None:
    assert scale_bar(0.25, 1000) == (200, "50 µm")
    assert scale_bar(8.0, 2000) == (250, "2 mm")
    assert scale_bar(0.5, 2048) == (400, "200 µm")


def test_a_thumbnail_that_is_none_is_one_line() -> None:
    with pytest.raises(InputError, match=r"`thumbnail` \[3, 4\] must be"):
        overlay_picture(np.zeros((3, 4), np.uint8), ArrayPlane(np.zeros((3, 4), np.uint8)), nuclei_frame(), Tally())


def test_one_call_writes_all_files_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(0), 300, 420)
    thumbnail = np.full((150, 210, 3), 200, dtype=np.uint8)
    for name in ("a", "b"):
        tally = write_results(
            tmp_path / name, ArrayPlane(codes), nuclei_frame(), thumbnail, min_area_px=5, skipped_px=7
        )
        assert tally.objects.sum() > 0
    names = ["counts.csv", "labels.tif", "objects.csv", "objects.geojson", "overlay.png"]
    assert sorted(entry.name for entry in (tmp_path / "a").iterdir()) == names
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    write_results(tmp_path / "c", ArrayPlane(codes), nuclei_frame(), thumbnail, zipped=True)
    assert (tmp_path / "c" / "objects.geojson.gz").is_file()


def test_the_legend_counts_what_the_table_counts() -> None:
    tally = Tally()
    tally.pixels[[0, 1, 255]], tally.objects[1] = [700, 100, 200], 3
    lines = [text for _, text in legend_lines(nuclei_frame(), tally)]
    assert lines[0].endswith("3 objects, 12.5 % of the analysed area")
    assert lines[-1] == "not analysed: 20.0 %"
    _, without_glass = legend_lines(nuclei_frame(), tally, skipped_px=300)[0]
    assert without_glass.endswith("3 objects, 20.0 % of the analysed area")
