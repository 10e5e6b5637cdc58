"""The pixels a network sees."""

import numpy as np
import pytest
import torch

from seunet.inference.image import ArrayImage, Level
from seunet.inference.magnification import Plan, plan
from seunet.inference.working import WorkingImage, taps


@pytest.fixture
def image() -> ArrayImage:
    return ArrayImage(np.random.default_rng(0).integers(0, 256, (90, 131, 3), dtype=np.uint8))


def planned(image: ArrayImage, mpp: float) -> Plan:
    return plan(mpp, image.levels, 0.25)


@pytest.mark.parametrize("mpp", [0.25, 0.08, 0.17, 0.31, 1.0])
def test_a_region_read_in_parts_is_the_region_read_whole(image: ArrayImage, mpp: float) -> None:
    working = WorkingImage(image, planned(image, mpp))
    whole = working.read(-3, -5, working.width_px + 9, working.height_px + 11)
    random = np.random.default_rng(1)
    for _ in range(25):
        x, y = random.integers(-3, working.width_px), random.integers(-5, working.height_px)
        width, height = random.integers(1, 12, 2)
        part = working.read(x, y, width, height)
        expected = whole[y + 5 : y + 5 + height, x + 3 : x + 3 + width]
        assert np.array_equal(part[: expected.shape[0], : expected.shape[1]], expected)
    assert (whole[:5] == 255).all()
    assert (whole[:, :3] == 255).all()


@pytest.mark.parametrize("resample", [0.37, 0.5, 0.81, 1.7, 4.0])
def test_resampling_is_torch_s_antialiased_bilinear_one(image: ArrayImage, resample: float) -> None:
    size = round(90 * resample), round(131 * resample)
    exact = Plan(0, resample, 1.0, None, size[1], size[0], 1 / resample, "")
    found = WorkingImage(image, exact).read(0, 0, size[1], size[0])
    pixels = torch.from_numpy(image.read(0, 0, 0, 131, 90)).permute(2, 0, 1)[None].double()
    expected = torch.nn.functional.interpolate(
        pixels, scale_factor=resample, mode="bilinear", antialias=True, recompute_scale_factor=False
    )[0].permute(1, 2, 0)
    inner = slice(4, -4)  # at the edges torch leaves taps out where we repeat the last pixel
    difference = np.abs(found[: expected.shape[0], : expected.shape[1]] - expected.numpy())[inner, inner]
    assert difference.max() <= 0.501


def test_taps_sum_to_one_and_stay_on_the_line() -> None:
    for resample in (0.13, 0.5, 1.0, 2.9):
        places, weights = taps(0, round(40 * resample), resample, 40)
        assert places.min() >= 0
        assert places.max() <= 39
        assert np.allclose(weights.sum(1), 1, atol=1e-6)


def test_the_level_of_the_plan_is_read() -> None:
    class Two(ArrayImage):
        def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> np.ndarray:
            return np.full((height_px, width_px, 3), 10 * level, dtype=np.uint8)

    image = Two(np.zeros((40, 40, 3), dtype=np.uint8))
    image.levels = (Level(40, 40, 1.0), Level(20, 20, 2.0))
    found = WorkingImage(image, plan(0.1, image.levels, 0.25, (1.2, 1.3))).read(0, 0, 20, 20)
    assert (found == 10).all()
