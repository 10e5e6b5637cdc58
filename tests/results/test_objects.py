"""Objects found in bands, against scipy's labels of the whole plane."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from seunet.errors import InputError
from seunet.results import find_objects as module
from seunet.results.find_objects import Object, Tally, objects
from seunet.results.splitting import parts_of, squared_distance
from support.planes import ArrayPlane, Codes, discs, nuclei_frame, random_codes

FRAME = nuclei_frame()


def pixels(one: Object) -> frozenset[tuple[int, int]]:
    return frozenset((int(row), column) for row, start, end in one.runs.T for column in range(start, end))


def as_bytes(found: list[Object]) -> list[tuple[int, bytes, bool]]:
    return [(one.code, one.runs.tobytes(), one.cut) for one in found]


def components(codes: Codes) -> set[tuple[int, frozenset[tuple[int, int]]]]:
    """What scipy finds: 4-connected components of each class."""
    found = set()
    for code in FRAME.object_codes:
        labels, _ = ndimage.label(codes == code)
        for number, box in enumerate(ndimage.find_objects(labels), start=1):
            rows, columns = np.nonzero(labels[box] == number)
            where = zip((rows + box[0].start).tolist(), (columns + box[1].start).tolist(), strict=True)
            found.add((code, frozenset(where)))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_objects_are_the_components_of_each_class_whatever_the_bands(seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random_codes(random, 61, 47)
    codes[10:14, 20:30] = 255
    whole = list(objects(ArrayPlane(codes), FRAME, split=False))
    assert {(one.code, pixels(one)) for one in whole} == components(codes)
    last = [tuple(one.runs[:2, -1]) for one in whole]
    assert last == sorted(last)
    for rows in (1, 2, 3, 7, 20, 60, 61, 1000):
        assert as_bytes(list(objects(ArrayPlane(codes), FRAME, split=False, band_rows=rows))) == as_bytes(whole)


@pytest.mark.parametrize("seed", range(6))
def test_parts_and_cuts_do_not_depend_on_the_bands(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    codes = random_codes(random, 83, 40)
    for max_rows, max_runs in ((9, 10**6), (10**6, 60), (13, 90)):
        monkeypatch.setattr(module, "MAX_ROWS", max_rows)
        monkeypatch.setattr(module, "MAX_OPEN_RUNS", max_runs)
        tallies = [Tally() for _ in range(6)]
        runs = [
            as_bytes(list(objects(ArrayPlane(codes), FRAME, tally=tally, band_rows=rows)))
            for rows, tally in zip((1, 2, 5, 17, 82, 83), tallies, strict=True)
        ]
        assert all(run == runs[0] for run in runs)
        assert all(tally.cut == tallies[0].cut for tally in tallies)
        assert sum(np.frombuffer(data, np.int32).reshape(3, -1)[2].sum() for _, data, _ in runs[0]) > 0


def test_an_object_beyond_the_limit_is_cut_there_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 10)
    codes = np.zeros((40, 12), dtype=np.uint8)
    codes[3:28, 2:5] = 1  # 25 rows: 10 + 10 + 5
    codes[3:13, 8:9] = 1  # 10 rows: whole
    tally = Tally()
    found = list(objects(ArrayPlane(codes), FRAME, split=False, tally=tally, band_rows=4))
    spans = [(int(one.runs[0, 0]), int(one.runs[0, -1]), one.cut) for one in found]
    assert spans == [(3, 12, True), (3, 12, False), (13, 22, True), (23, 27, True)]
    assert tally.cut == 3
    assert sum(one.area_px for one in found) == int((codes == 1).sum())


def test_too_many_open_runs_cut_all_objects_and_lose_no_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_RUNS", 100)
    codes = np.tile(np.array([0, 1], dtype=np.uint8), (50, 20))  # stripes from top to bottom
    tally = Tally()
    found = list(objects(ArrayPlane(codes), FRAME, split=False, tally=tally, band_rows=8))
    assert sum(one.area_px for one in found) == 50 * 20
    assert max(int(one.runs[0, -1] - one.runs[0, 0]) + 1 for one in found) == 6  # 20 stripes: row 6 has 120 runs
    assert tally.cut == len(found)


def test_small_objects_are_left_out_and_counted() -> None:
    codes = np.zeros((20, 20), dtype=np.uint8)
    codes[2, 2] = 1
    codes[5:8, 5:8] = 1
    codes[12:14, 12:14] = 2
    codes[0, :] = 255
    tally = Tally()
    found = list(objects(ArrayPlane(codes), FRAME, min_area_px=4, tally=tally))
    assert [(one.code, one.area_px) for one in found] == [(1, 9), (2, 4)]
    assert (tally.too_small, tally.too_small_px) == (1, 1)
    assert tally.objects[:3].tolist() == [0, 1, 1]
    assert tally.pixels[[0, 1, 2, 255]].tolist() == [366, 10, 4, 20]


def test_touching_discs_are_parted_and_one_disc_is_not() -> None:
    for radius in (5.0, 10.0, 25.0):
        size = int(8 * radius)
        middle, apart = 4 * radius, 0.9 * radius
        one = discs(size, size, [(middle, middle, radius)])
        two = discs(size, size, [(middle, middle - apart, radius), (middle, middle + apart, radius)])
        assert len(list(objects(ArrayPlane(one), FRAME))) == 1
        parts = list(objects(ArrayPlane(two), FRAME))
        assert len(parts) == 2
        assert sum(part.area_px for part in parts) == int(two.sum())
        neck_px = 2 * (radius**2 - apart**2) ** 0.5
        assert abs(parts[0].area_px - parts[1].area_px) <= neck_px + 1  # the middle column goes to one of them
        assert len(list(objects(ArrayPlane(two), FRAME, split=False))) == 1
        assert len(list(objects(ArrayPlane(two), nuclei_frame(regions=frozenset({1}))))) == 1


def test_an_object_too_large_for_a_cluster_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    two = discs(80, 80, [(40, 31, 10), (40, 49, 10)])
    monkeypatch.setattr(module, "MAX_SPLIT_PX", 500)
    assert len(list(objects(ArrayPlane(two), FRAME))) == 1


@pytest.mark.parametrize("seed", range(10))
def test_distances_are_exact_and_parts_are_connected(seed: int) -> None:
    inside = np.pad(random_codes(np.random.default_rng(seed), 40, 53, codes=2) == 1, 1)
    distances = ndimage.distance_transform_edt(inside)
    assert np.array_equal(squared_distance(inside), np.rint(distances**2))
    marks, count = parts_of(inside, 0.85, 1.0)
    assert np.array_equal(marks > 0, inside)
    assert set(np.unique(marks)) - {0} == set(range(1, count + 1))
    assert all(ndimage.label(marks == part)[1] == 1 for part in range(1, count + 1))


def test_a_code_without_a_class_is_one_line() -> None:
    codes = np.full((4, 4), 7, dtype=np.uint8)
    with pytest.raises(InputError, match="holds code 7 and there are 3 classes"):
        list(objects(ArrayPlane(codes), FRAME))


def test_an_empty_plane_has_no_objects() -> None:
    tally = Tally()
    assert not list(objects(ArrayPlane(np.zeros((30, 5), dtype=np.uint8)), FRAME, tally=tally, band_rows=7))
    assert tally.pixels[0] == 150


def block_with_rim() -> tuple[Codes, Codes]:
    """One rectangle without any neck, and a rim across it."""
    codes, rim = np.zeros((24, 44), dtype=np.uint8), np.zeros((24, 44), dtype=np.uint8)
    codes[4:20, 3:41] = 1
    rim[4:20, 20:23] = 1
    return codes, rim


def test_objects_without_a_neck_are_parted_along_the_rim_which_is_shared_out() -> None:
    codes, rim = block_with_rim()
    assert len(list(objects(ArrayPlane(codes), FRAME))) == 1
    first, second = objects(ArrayPlane(codes), FRAME, rim=ArrayPlane(rim))
    assert pixels(first) | pixels(second) == frozenset(zip(*(axis.tolist() for axis in np.nonzero(codes)), strict=True))
    assert not pixels(first) & pixels(second)
    assert {column for _, column in pixels(first)} == set(range(3, 22))
    assert first.area_px + second.area_px == codes.sum()


def test_an_empty_rim_changes_nothing_and_one_without_an_inside_is_ignored() -> None:
    random = np.random.default_rng(3)
    codes = random_codes(random, 61, 47)
    plain = as_bytes(list(objects(ArrayPlane(codes), FRAME)))
    assert as_bytes(list(objects(ArrayPlane(codes), FRAME, rim=ArrayPlane(np.zeros_like(codes))))) == plain
    assert as_bytes(list(objects(ArrayPlane(codes), FRAME, rim=ArrayPlane(np.ones_like(codes))))) == plain


def test_a_crumb_between_rims_is_no_object() -> None:
    codes, rim = block_with_rim()
    rim[4:20, 23:26] = 1
    rim[10:12, 22:24] = 0  # four pixels in the middle of the rim
    parts = list(objects(ArrayPlane(codes), FRAME, rim=ArrayPlane(rim)))
    assert len(parts) == 2
    assert all(ndimage.label(_drawn(part, codes.shape))[1] == 1 for part in parts)


def _drawn(one: Object, shape: tuple[int, ...]) -> Codes:
    drawn = np.zeros(shape, dtype=np.uint8)
    for row, column in pixels(one):
        drawn[row, column] = 1
    return drawn
