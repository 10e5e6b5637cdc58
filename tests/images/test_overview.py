"""Tissue is found, glass is left out, nothing pale is lost."""

import numpy as np
import pytest

from seunet.errors import RegionError
from seunet.images.image import ArrayImage, Level, RgbArray
from seunet.images.overview import Tissue, find_tissue
from seunet.segmentation import Span, cut_to, tiles

PALE = (240, 222, 236)
"""Thin stroma, little eosin."""


def glass(height: int, width: int, colour: tuple[int, int, int] = (243, 243, 244)) -> RgbArray:
    random = np.random.default_rng(0)
    noise = random.integers(-4, 5, (height, width, 3))
    return (np.array(colour) + noise).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("colour", [(243, 243, 244), (255, 255, 255), (228, 228, 228), (236, 240, 246)])
def test_glass_has_no_tissue(colour: tuple[int, int, int]) -> None:
    found = find_tissue(ArrayImage(glass(2100, 2200, colour)))
    assert found is not None
    assert not found.cells.any()
    (tile,) = tiles((2100, 2200), (4096, 4096))
    assert cut_to(tile, found.mask(tile.rows, tile.columns, 1.0)) is None


@pytest.mark.parametrize("colour", [PALE, (200, 150, 190), (90, 60, 120)])
def test_tissue_is_found_and_little_else(colour: tuple[int, int, int]) -> None:
    pixels = glass(2100, 2300)
    pixels[700:1200, 900:1700] = colour
    found = find_tissue(ArrayImage(pixels))
    assert found is not None
    mask = found.mask(Span(0, 2100), Span(0, 2300), 1.0)
    assert mask[700:1200, 900:1700].all()
    assert mask[696 - 128 :, :].any()
    assert not mask[: 700 - 192].any()
    assert not mask[1200 + 192 :].any()
    (tile,) = tiles((2100, 2300), (4096, 4096))
    cut = cut_to(tile, mask)
    assert cut is not None
    assert (mask[slice(*cut.rows), slice(*cut.columns)]).sum() == mask.sum()
    assert cut.pixels < tile.pixels / 4


@pytest.mark.parametrize("colour", [PALE, (200, 150, 190)])
def test_a_picture_full_of_tissue_is_looked_at_whole(colour: tuple[int, int, int]) -> None:
    found = find_tissue(ArrayImage(glass(2100, 2200, colour)))
    assert found is not None
    assert found.cells.all()
    assert find_tissue(ArrayImage(glass(1000, 1000, colour))) is None


def test_a_single_nucleus_is_not_lost() -> None:
    pixels = glass(2100, 2200)
    pixels[1003:1019, 1007:1023] = (90, 60, 120)
    found = find_tissue(ArrayImage(pixels))
    assert found is not None
    assert found.mask(Span(1003, 1019), Span(1007, 1023), 1.0).all()


def test_a_coarse_level_is_enough_and_no_more_is_read() -> None:
    class Pyramid(ArrayImage):
        def __init__(self, pixels: RgbArray) -> None:
            super().__init__(pixels)
            height, width = pixels.shape[:2]
            self.levels = (
                Level(width * 8, height * 8, 1.0),
                Level(width * 2, height * 2, 4.0),
                Level(width, height, 8.0),
            )

        def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
            assert level == 2
            return super().read(0, x, y, width_px, height_px)

    pixels = glass(400, 500)
    pixels[100:200, 100:300] = (200, 150, 190)
    found = find_tissue(Pyramid(pixels))
    assert found is not None
    assert found.cells.shape == (50, 63)
    # On working pixels of half the size of level 0's.
    mask = found.mask(Span(0, 6400), Span(0, 8000), 0.5)
    assert mask[1600:3200, 1600:4800].all()
    assert not mask[:1200].any()


def test_what_cannot_be_read_is_not_taken_for_glass() -> None:
    class Torn(ArrayImage):
        def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
            if y <= 1000 < y + height_px:
                raise RegionError("torn")
            return super().read(level, x, y, width_px, height_px)

    found = find_tissue(Torn(glass(2100, 2200)))
    assert found is not None
    assert found.mask(Span(1000, 1001), Span(0, 2200), 1.0).all()
    assert found.share < 0.3


def test_the_mask_of_a_part_is_that_of_the_whole() -> None:
    cells = np.random.default_rng(0).random((10, 12)) < 0.5
    tissue = Tissue(cells)
    whole = tissue.mask(Span(0, 300), Span(0, 370), 2.1)
    assert np.array_equal(tissue.mask(Span(37, 201), Span(11, 333), 2.1), whole[37:201, 11:333])
