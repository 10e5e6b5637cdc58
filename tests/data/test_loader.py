"""Windows for training: pure in (seed, epoch, index), whatever the number of workers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from seunet.data.augment import FLIPS, NONE, Augmentation, draw, epoch_order
from seunet.data.verification import verify
from seunet.data.windows import EpochSampler, WindowDataset
from seunet.errors import InputError
from support.cli import seunet
from support.datasets import write_lab, write_monuseg

BOLD = Augmentation(flips=True, shift_px=9, scale_range=(0.5, 2.0))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("loader")
    source = write_monuseg(root / "src", train=3, test=1)
    assert seunet("data", "prepare", "monuseg", source, root / "set", "--window", 32, "--stride", 16).code == 0
    return root / "set"


def test_a_window_is_the_pixels_at_its_place(prepared: Path) -> None:
    windows = WindowDataset(prepared, "train")
    assert len(windows) == 27
    image_index, x, y = windows.rows[13]
    entry = windows.manifest.images[image_index]
    image = np.asarray(Image.open(prepared / entry.image.path))[y : y + 32, x : x + 32]
    mask = np.asarray(Image.open(prepared / entry.mask.path))[y : y + 32, x : x + 32]
    window = windows[13]
    assert window.number == 13
    assert window.image.dtype == torch.float32
    assert (window.image.numpy() == image.transpose(2, 0, 1).astype(np.float32) / 255).all()
    assert window.mask.dtype == torch.int64
    assert (window.mask.numpy() == mask).all()


def test_order_and_pixels_do_not_depend_on_the_number_of_workers(prepared: Path) -> None:
    windows = WindowDataset(prepared, "train", augmentation=BOLD, seed=3)
    runs = []
    for workers in (0, 1, 2):
        sampler = EpochSampler(len(windows), seed=3, epoch=5)
        batches = list(DataLoader(windows, batch_size=4, sampler=sampler, num_workers=workers))
        runs.append(
            (
                torch.cat([b.image for b in batches]),
                torch.cat([b.mask for b in batches]),
                [b.number for b in batches],
            )
        )
    for images, masks, numbers in runs[1:]:
        assert torch.equal(images, runs[0][0])
        assert torch.equal(masks, runs[0][1])
        assert all(torch.equal(a, b) for a, b in zip(numbers, runs[0][2], strict=True))


def test_an_epoch_visits_every_window_once_in_an_order_of_its_own() -> None:
    orders = [epoch_order(50, seed=1, epoch=epoch) for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert orders[1] == epoch_order(50, seed=1, epoch=1)
    assert orders[1] != epoch_order(50, seed=2, epoch=1)


def test_an_interrupted_epoch_goes_on_where_it_stopped() -> None:
    whole = list(EpochSampler(20, seed=1, epoch=4))
    rest = EpochSampler(20, seed=1, epoch=4, start=13)
    assert list(rest) == whole[13:]
    assert len(rest) == 7


def test_epochs_differ_in_their_draws_and_no_augmentation_differs_in_nothing(prepared: Path) -> None:
    bold = WindowDataset(prepared, "train", augmentation=BOLD)
    assert not torch.equal(bold[0, 5].image, bold[1, 5].image)
    plain = WindowDataset(prepared, "train", augmentation=NONE)
    assert torch.equal(plain[0, 5].image, plain[1, 5].image)


def test_flips_are_exact_and_keep_image_and_mask_together(prepared: Path) -> None:
    plain, flipped = (WindowDataset(prepared, "train", augmentation=a) for a in (NONE, FLIPS))
    seen = set()
    for epoch in range(12):
        chance = draw(FLIPS, 0, epoch, 4)
        axes = [axis for axis, flip in ((-2, chance.flip_y), (-1, chance.flip_x)) if flip]
        seen.add(tuple(axes))
        assert torch.equal(flipped[epoch, 4].image, plain[4].image.flip(axes))
        assert torch.equal(flipped[epoch, 4].mask, plain[4].mask.flip(axes))
    assert seen == {(), (-2,), (-1,), (-2, -1)}


def test_a_shift_stays_on_the_image_and_shows_its_pixels(prepared: Path) -> None:
    windows = WindowDataset(prepared, "train", augmentation=Augmentation(flips=False, shift_px=9))
    whole = np.asarray(Image.open(prepared / windows.manifest.images[0].mask.path))
    for epoch in range(20):
        chance = draw(windows.augmentation, 0, epoch, 4)
        _, x, y = windows.rows[4]
        left, top = (min(max(start + shift, 0), 32) for start, shift in ((x, chance.shift_x), (y, chance.shift_y)))
        mask = windows[epoch, 4].mask.numpy()
        assert (mask == whole[top : top + 32, left : left + 32]).all()
        assert abs(chance.shift_x) <= 9


def test_scale_augmentation_is_off_unless_asked_for() -> None:
    assert all(draw(FLIPS, 0, 0, index).scale == 1.0 for index in range(50))
    scales = [draw(BOLD, 0, 0, index).scale for index in range(200)]
    assert min(scales) >= 0.5
    assert max(scales) <= 2.0
    assert 0.35 < np.mean(np.log2(scales) < 0) < 0.65


def test_scale_two_shows_half_as_much_twice_as_large(prepared: Path) -> None:
    windows = WindowDataset(prepared, "train", augmentation=Augmentation(flips=False, scale_range=(2.0, 2.0)))
    whole = np.asarray(Image.open(prepared / windows.manifest.images[0].mask.path))
    _, x, y = windows.rows[4]
    expected = whole[y + 8 : y + 24, x + 8 : x + 24].repeat(2, axis=0).repeat(2, axis=1)
    assert (windows[4].mask.numpy() == expected).all()
    assert windows[4].image.shape == (3, 32, 32)


def test_beyond_a_small_image_the_glass_is_white_and_the_mask_says_ignore(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    options = ("--kind", "instances", "--min-annotated", 0.1)
    assert seunet("data", "prepare", "folder", source, tmp_path / "a", *options, "--window", 64).code == 0
    window = WindowDataset(tmp_path / "a", "train")[0]
    assert window.image.shape == (3, 64, 64)
    assert (window.image[:, 48:] == 1).all()
    assert (window.mask[48:] == 255).all()
    assert (window.mask[:, 48:] == 255).all()
    assert (window.mask[:48, :48] <= 1).all()


def test_a_set_larger_than_the_memory_allowed_is_mapped_from_disk_with_the_same_pixels(
    prepared: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(prepared, tmp_path / "set"))
    mapped, held = WindowDataset(folder, "train", cache_bytes=1), WindowDataset(folder, "train")
    for index in (0, 10, 20, 1, 11):
        assert torch.equal(mapped[index].image, held[index].image)
        assert torch.equal(mapped[index].mask, held[index].mask)
    raw = sorted((folder / ".pixels").iterdir())
    assert [file.stat().st_size for file in raw].count(64 * 64 * 3) == 3
    raw[0].write_bytes(b"cut short")
    again = WindowDataset(folder, "train", cache_bytes=1)
    assert all(torch.equal(again[index].image, held[index].image) for index in range(27))
    assert verify(folder) == []


def test_a_large_set_on_a_read_only_disk_is_read_all_the_same(prepared: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prepared, tmp_path / "set"))
    (folder / ".pixels").write_bytes(b"a file where the folder should be")
    mapped, held = WindowDataset(folder, "train", cache_bytes=1), WindowDataset(folder, "train")
    assert torch.equal(mapped[7].image, held[7].image)


def test_images_can_be_chosen_by_name_for_a_split_of_ones_own(prepared: Path) -> None:
    name = "TCGA-01-1001-01Z-00-DX1"
    assert len(WindowDataset(prepared, "train", images=[name])) == 9
    assert len(WindowDataset(prepared, ["train", "test"])) == 36


def test_what_the_set_does_not_have_is_an_error(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown split 'trian'; did you mean 'train'\?"):
        WindowDataset(prepared, "trian")
    with pytest.raises(InputError, match=r"no windows in split validation \(the set has: train, test\)"):
        WindowDataset(prepared, "validation")
    with pytest.raises(InputError, match=r"unknown image 'TCGA-01-1001'; did you mean 'TCGA-01-1001-01Z-00-DX1'\?"):
        WindowDataset(prepared, images=["TCGA-01-1001"])
    broken = Path(shutil.copytree(prepared, tmp_path / "set"))
    windows = WindowDataset(broken, "train")
    Image.fromarray(np.zeros((5, 6, 3), dtype=np.uint8)).save(broken / windows.manifest.images[0].image.path)
    with pytest.raises(InputError, match=r"DX1.png: is 6×5, the manifest says 64×64; run `seunet data verify`"):
        windows[0]


def test_augmentations_that_cannot_be_meant_are_errors() -> None:
    with pytest.raises(InputError, match=r"^`shift_px` \(=-1\): Input should be greater than or equal to 0$"):
        Augmentation(shift_px=-1)
    with pytest.raises(InputError, match=r"^`scale_range` \(=\(2.0, 1.0\)\): must rise within 0.1–10$"):
        Augmentation(scale_range=(2.0, 1.0))


def test_a_crop_is_a_part_of_its_window_at_a_place_that_the_epoch_draws(prepared: Path) -> None:
    windows = WindowDataset(prepared, "train", augmentation=Augmentation(flips=False, crop_px=20), seed=3)
    whole = WindowDataset(prepared, "train")
    assert windows.size_px == 20
    places = set()
    for epoch in range(30):
        chance = draw(windows.augmentation, 3, epoch, 4)
        left, top = round(chance.crop_x * 12), round(chance.crop_y * 12)
        places.add((left, top))
        window = windows[epoch, 4]
        assert window.image.shape == (3, 20, 20)
        assert torch.equal(window.image, whole[4].image[:, top : top + 20, left : left + 20])
        assert torch.equal(window.mask, whole[4].mask[top : top + 20, left : left + 20])
    assert len(places) > 20
    assert all(0 <= left <= 12 and 0 <= top <= 12 for left, top in places)


def test_a_crop_of_the_whole_window_is_the_window(prepared: Path) -> None:
    crop = WindowDataset(prepared, "train", augmentation=Augmentation(flips=False, crop_px=32))
    assert torch.equal(crop[2, 4].image, WindowDataset(prepared, "train")[4].image)


def test_crops_do_not_change_what_else_is_drawn() -> None:
    bold = Augmentation(flips=True, shift_px=9, scale_range=(0.5, 2.0), crop_px=8)
    for index in range(20):
        assert draw(bold, 1, 2, index) == draw(BOLD, 1, 2, index)


def test_a_crop_with_shift_and_scale_keeps_its_size_and_its_mask_beside_it(prepared: Path) -> None:
    bold = Augmentation(flips=True, shift_px=9, scale_range=(0.5, 2.0), crop_px=20)
    windows = WindowDataset(prepared, "train", augmentation=bold)
    for index in range(27):
        window = windows[1, index]
        assert window.image.shape == (3, 20, 20)
        assert window.mask.shape == (20, 20)
        assert bool((window.mask <= 1).all())


def test_a_crop_larger_than_the_windows_or_smaller_than_a_pixel_is_refused(prepared: Path) -> None:
    with pytest.raises(InputError, match=r"set: `crop_px` \(=33\) is larger than the windows, 32 px"):
        WindowDataset(prepared, "train", augmentation=Augmentation(crop_px=33))
    with pytest.raises(InputError, match=r"^`crop_px` \(=0\): Input should be greater than or equal to 1$"):
        Augmentation(crop_px=0)
