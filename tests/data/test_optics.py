"""What varies between windows beside flips, crops and magnification: optics, stains, quarter turns, averaging."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seunet.data import optics
from seunet.data.augment import Augmentation, draw_variation
from seunet.data.optics import Optics, OpticsShares, with_optics
from seunet.data.stain_mixing import Mixing, draw_mixing, restained
from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.maths import tissue
from support.datasets import he_pixels
from tests.support.prepared import prepared_nuclei

STILL = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
ALL = OpticsShares(blur=1, sharpen=1, resample=1, noise=1, jpeg=1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_nuclei(tmp_path_factory.mktemp("optics"))


def roughness(image: np.ndarray) -> float:
    return float(np.abs(np.diff(image.astype(float), axis=1)).mean())


def test_blur_and_fewer_pixels_soften_sharpening_and_noise_roughen_and_the_size_stays() -> None:
    image = he_pixels(64, seed=1)
    softer = [optics.blurred(image, 1.5), optics.shrunk_and_enlarged(image, 2.0)]
    rougher = [optics.sharpened(image, 1.0), optics.noisy(image, 12.0, seed=3)]
    assert all(changed.shape == image.shape and changed.dtype == np.uint8 for changed in softer + rougher)
    assert all(roughness(changed) < roughness(image) for changed in softer)
    assert all(roughness(changed) > roughness(image) for changed in rougher)


def test_noise_has_the_deviation_it_is_given() -> None:
    grey = np.full((128, 128, 3), 128, dtype=np.uint8)
    assert optics.noisy(grey, 8.0, seed=0).astype(float).std() == pytest.approx(8, rel=0.02)


def test_jpeg_keeps_the_colours_in_their_places_and_loses_more_the_lower_the_quality() -> None:
    red = np.zeros((32, 32, 3), dtype=np.uint8)
    red[..., 0] = 200
    assert np.abs(optics.through_jpeg(red, 90).astype(int) - red).max() < 6
    coarse, fine = (optics.through_jpeg(he_pixels(64, seed=2), quality) for quality in (20, 95))
    error = [np.abs(each.astype(float) - he_pixels(64, seed=2)).mean() for each in (coarse, fine)]
    assert error[0] > 1.5 * error[1]


def test_shrinking_and_enlarging_leaves_the_magnification() -> None:
    image = np.full((64, 64, 3), 255, dtype=np.uint8)
    image[20:44, 20:44] = 0
    dark = optics.shrunk_and_enlarged(image, 2.0)[..., 0] < 128
    assert dark.sum() == pytest.approx(24 * 24, rel=0.05)


def test_optics_are_drawn_in_their_shares_and_blur_excludes_sharpening() -> None:
    rules = Augmentation(optics=OpticsShares(blur=0.3, sharpen=1, jpeg=0.5))
    drawn = [draw_variation(rules, 0, 1, index).optics for index in range(2000)]
    assert np.mean([one.blur_px > 0 for one in drawn]) == pytest.approx(0.3, abs=0.04)
    assert np.mean([one.jpeg_quality > 0 for one in drawn]) == pytest.approx(0.5, abs=0.04)
    assert all((one.blur_px > 0) != (one.sharpen > 0) for one in drawn)
    assert not any(one.noise or one.shrink for one in drawn)


def test_all_of_it_is_a_pure_function_of_seed_epoch_and_index(prepared: Path) -> None:
    rules = Augmentation(turns=True, averaging=0.5, stain_mix=0.7, optics=ALL, scale_range=(0.5, 2.0))
    first, again = (WindowDataset(prepared, "train", augmentation=rules, seed=4) for _ in range(2))
    for key in ((0, 3), (5, 3), (5, 4)):
        assert (first[key].image == again[key].image).all()
        assert (first[key].mask == again[key].mask).all()
    assert (first[0, 3].image != first[5, 3].image).any()


def test_nothing_is_changed_where_nothing_is_asked_for() -> None:
    image = he_pixels(32, seed=0)
    assert with_optics(image, Optics()) is image
    assert draw_variation(Augmentation(), 0, 0, 0) == (False, False, None, Optics())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: OpticsShares(blur=1.5), r"^`blur` \(=1.5\): Input should be less than or equal to 1$"),
        (lambda: Augmentation(averaging=-1), r"^`averaging` \(=-1\): Input should be greater than or equal to 0$"),
        (lambda: Augmentation(stain_mix=3), r"^`stain_mix` \(=3\): Input should be less than or equal to 2$"),
    ],
)
def test_what_cannot_be_a_share_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()  # type: ignore[operator]


def test_more_of_a_stain_is_darker_and_white_glass_stays_white() -> None:
    image = he_pixels(64, seed=5)
    pale, deep = (restained(image, Mixing(gain, gain, STILL)) for gain in (0.6, 1.6))
    assert deep.mean() < image.mean() < pale.mean()
    assert tissue(deep).mean() >= tissue(image).mean()
    white = np.full((4, 4, 3), 255, dtype=np.uint8)
    assert (restained(white, Mixing(1.8, 0.5, STILL)) == 255).all()
    same = restained(image, Mixing(1, 1, STILL))
    assert np.abs(same.astype(int) - image).max() <= 1


def test_eosin_alone_is_changed_in_a_third_of_the_draws() -> None:
    random = np.random.default_rng(0)
    drawn = [draw_mixing(0.7, random) for _ in range(1500)]
    assert np.mean([one.haematoxylin == 1 and one.hues == STILL for one in drawn]) == pytest.approx(1 / 3, abs=0.04)
    assert all(2**-0.7 <= one.eosin <= 2**0.7 for one in drawn)


def test_a_quarter_turn_turns_image_and_mask_and_all_eight_ways_occur(prepared: Path) -> None:
    plain = WindowDataset(prepared, "train")[0]
    turning = WindowDataset(prepared, "train", augmentation=Augmentation(turns=True))
    ways = set()
    for epoch in range(80):
        window = turning[epoch, 0]
        for number in range(8):
            image, mask = plain.image, plain.mask
            if number & 4:
                image, mask = image.transpose(1, 2), mask.T
            axes = [axis for axis in (1, 2) if number & axis]
            if (window.image == image.flip(axes)).all():
                ways.add(number)
                assert (window.mask == mask.flip([axis - 1 for axis in axes])).all()
    assert ways == set(range(8))


def test_shrinking_averages_in_the_share_asked_for_and_the_mask_keeps_its_middle(prepared: Path) -> None:
    half = {"flips": False, "crop_px": 16, "scale_range": (0.5, 0.5)}
    windows = WindowDataset(prepared, "train", augmentation=Augmentation(**half, averaging=1.0))  # type: ignore[arg-type]
    image_index, *_ = windows.rows[0]
    whole = windows.whole(0)
    shown = windows[0, 0].image.permute(1, 2, 0).numpy() * 255
    averages = whole.reshape(32, 2, 32, 2, 3).mean((1, 3))
    places = [(y, x) for y in range(17) for x in range(17)]
    errors = [np.abs(averages[y : y + 16, x : x + 16] - shown).max() for y, x in places]
    odd = whole[1:-1, 1:-1].reshape(31, 2, 31, 2, 3).mean((1, 3))
    errors += [np.abs(odd[y : y + 16, x : x + 16] - shown).max() for y in range(16) for x in range(16)]
    mixed = [whole[1:-1].reshape(31, 2, 32, 2, 3).mean((1, 3)), whole[:, 1:-1].reshape(32, 2, 31, 2, 3).mean((1, 3))]
    errors += [
        np.abs(each[y : y + 16, x : x + 16] - shown).max()
        for each in mixed
        for y in range(each.shape[0] - 15)
        for x in range(each.shape[1] - 15)
    ]
    assert min(errors) <= 1
    assert image_index == 0
