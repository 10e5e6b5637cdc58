"""Where a slide has tissue."""

import numpy as np
import pytest

from seunet.inference.image import ArrayImage
from seunet.inference.magnification import plan
from seunet.inference.tissue import TissueMask, tissue_in, tissue_mask


def glass(height: int, width: int, level: int = 243, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(level, 2, (height, width, 3))
    return np.clip(noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("level", [255, 243, 225])
def test_empty_glass_has_no_tissue(level: int) -> None:
    assert not tissue_in(glass(120, 160, level)).any()


def test_a_field_full_of_tissue_is_tissue_everywhere() -> None:
    pink = glass(100, 100) - np.array([20, 70, 35], dtype=np.uint8)
    assert tissue_in(pink).all()


def test_pale_tissue_on_glass_is_found_and_little_else() -> None:
    picture = glass(200, 200)
    picture[60:120, 50:90] -= np.array([6, 24, 10], dtype=np.uint8)  # the faintest eosin
    found = tissue_in(picture)
    assert found[60:120, 50:90].all()
    outside = found.copy()
    outside[55:125, 45:95] = False
    assert not outside.any()


def test_a_mask_answers_for_regions_of_the_working_raster() -> None:
    cells = np.zeros((10, 20), dtype=bool)
    cells[3, 7] = True
    mask = TissueMask(cells, 2000, 1000)
    assert mask.any_in(700, 300, 1, 1)
    assert mask.any_in(0, 0, 701, 301)
    assert not mask.any_in(0, 0, 700, 1000)
    assert not mask.any_in(800, 0, 1200, 1000)
    assert not mask.any_in(700, 400, 100, 100)
    assert mask.any_in(0, 0, 5000, 5000)


def test_a_small_image_is_looked_at_whole_and_a_large_one_by_its_thumbnail() -> None:
    small = ArrayImage(glass(300, 300))
    assert tissue_mask(small, plan(None, small.levels, None)) is None
    large = glass(2100, 2100)
    large[500:900, 1000:1500, 1] -= 90
    image = ArrayImage(large)
    mask = tissue_mask(image, plan(None, image.levels, None))
    assert mask is not None
    assert mask.any_in(1000, 500, 500, 400)
    assert not mask.any_in(0, 1200, 2100, 900)
    assert 0.04 < mask.share < 0.06
