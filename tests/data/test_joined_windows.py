"""Several prepared sets in one training: shares, scales, and what cannot be joined."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from seunet.data.joined_windows import JoinedWindows, rounds_of, shares_of
from seunet.data.rim import rim_of, with_rim
from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from tests.support.prepared import prepared_nuclei


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[WindowDataset]:
    roots = [
        prepared_nuclei(tmp_path_factory.mktemp("a"), train=2),
        prepared_nuclei(tmp_path_factory.mktemp("b"), train=1),
    ]
    return [WindowDataset(root, "train") for root in roots]


def test_an_epoch_has_each_sets_share(sets: list[WindowDataset]) -> None:
    joined = JoinedWindows(sets, [1, 3], epoch_windows=40)
    keys = joined.epoch_keys(seed=0, epoch=2)
    assert len(keys) == 40 == joined.epoch_windows
    assert Counter(number >= len(sets[0]) for _, number in keys) == {True: 30, False: 10}
    assert keys == joined.epoch_keys(seed=0, epoch=2)
    assert keys != joined.epoch_keys(seed=1, epoch=2)


def test_no_window_is_shown_twice_in_the_same_way_over_all_epochs(sets: list[WindowDataset]) -> None:
    joined = JoinedWindows(sets, [1, 3], epoch_windows=40)
    keys = [key for epoch in range(6) for key in joined.epoch_keys(0, epoch)]
    assert len(set(keys)) == len(keys)
    seen = Counter(number for _, number in keys if number >= len(sets[0]))
    assert max(seen.values()) - min(seen.values()) <= 1


def test_rounds_visit_every_window_once_before_any_twice() -> None:
    row = rounds_of(5, 0, 12, seed=1)
    assert sorted(index for turn, index in row if turn == 0) == list(range(5))
    assert rounds_of(5, 3, 12, seed=1) == row[3:]
    assert sum(shares_of(101, [0.3, 0.3, 0.4])) == 101


def test_a_window_of_the_second_set_is_that_sets_and_has_the_joined_number(sets: list[WindowDataset]) -> None:
    joined = JoinedWindows(sets)
    window, number = joined[0, 20], 20
    assert window.number == number
    assert (window.image == sets[1][0, number - len(sets[0])].image).all()
    assert joined.image_name(20) == sets[1].image_name(2)


def test_an_image_is_brought_to_the_training_scale_by_its_own_mpp(tmp_path: Path) -> None:
    root = prepared_nuclei(tmp_path)  # 0.252 µm per pixel
    windows = WindowDataset(root, "train", mpp=0.126)
    plain = WindowDataset(root, "train")
    middle = plain[0].mask[8:24, 8:24].repeat_interleave(2, 0).repeat_interleave(2, 1)
    assert (windows[0].mask == middle).all()


def test_an_image_without_mpp_or_with_an_absurd_one_is_refused_by_name(tmp_path: Path) -> None:
    root = prepared_nuclei(tmp_path)
    text = (root / "manifest.json").read_text()
    with pytest.raises(InputError, match=r"has mpp 0.252, over 8 times off `data.mpp` \(=4\); correct the table"):
        WindowDataset(root, "train", mpp=4.0)
    (root / "manifest.json").write_text(text.replace('"mpp":0.252', '"mpp":null'))
    with pytest.raises(InputError, match=r"has no mpp, which `data.mpp` and `data.rim_um` need of every image"):
        WindowDataset(root, "train", mpp=0.25)
    WindowDataset(root, "train")


def test_the_rim_is_where_another_object_is_near_and_part_of_its_object() -> None:
    instances = np.zeros((9, 14), dtype=np.uint16)
    instances[2:7, 1:5], instances[2:7, 5:9], instances[2:7, 11:13] = 4, 9, 1
    rim = rim_of(instances, 1)
    assert rim[2:7, 4:6].all()
    assert rim.sum() == 10
    assert rim_of(instances, 2)[2:7, 3:7].all()
    assert rim_of(instances, 3)[4, 8]
    assert rim_of(instances, 3)[4, 11]
    codes = (instances > 0).astype(np.uint8)
    codes[2, 4] = 255
    marked = with_rim(codes, instances, width_um=0.25, mpp=0.25, rim_code=2)
    assert marked[2, 4] == 255
    assert (marked == 2).sum() == 9
    assert ((marked > 0) == (codes > 0)).all()


def test_a_rim_is_learnt_from_instances_only(tmp_path: Path) -> None:
    root = prepared_nuclei(tmp_path)
    text = (root / "manifest.json").read_text()
    assert (WindowDataset(root, "train", rim_um=5.0)[0].mask == 2).any()
    start, end = text.index('"instances":{"path"'), text.index("}", text.index('"instances":{"path"')) + 1
    (root / "manifest.json").write_text(text.replace(text[start:end], '"instances":null'))
    with pytest.raises(InputError, match=r"has no instance map to make `data.rim_um` from"):
        WindowDataset(root, "train", rim_um=1.0)
