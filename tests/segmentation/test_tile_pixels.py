"""The working raster read in parts is the raster read whole."""

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from seunet.errors import RegionError
from seunet.images import ArrayImage, RgbArray
from seunet.segmentation.scale_choice import ReadingPlan
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_pixels import WorkingRaster
from tests.support.networks import picture


def at(resample: float) -> ReadingPlan:
    return ReadingPlan(0, resample, 1.0, None, 1 / resample, "")


class Torn(ArrayImage):
    """Cannot be read where a rectangle (x, y, width, height) is touched."""

    def __init__(self, pixels: RgbArray, *torn: tuple[int, int, int, int]) -> None:
        super().__init__(pixels)
        self._torn = torn

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        for left, top, width, height in self._torn:
            if left < x + width_px and x < left + width and top < y + height_px and y < top + height:
                raise RegionError(f"torn at {left}, {top}")
        return super().read(level, x, y, width_px, height_px)


@pytest.mark.parametrize("resample", [1.0, 0.5, 0.317, 0.25, 1.9, 4.0, 0.9999])
def test_parts_are_those_of_the_whole(resample: float) -> None:
    raster = WorkingRaster(ArrayImage(picture(173, 311)), at(resample))
    height, width = raster.size
    assert raster.size == (max(1, round(173 * resample)), max(1, round(311 * resample)))
    whole = raster.read(Span(0, height), Span(0, width)).pixels
    random = np.random.default_rng(0)
    for _ in range(20):
        top, left = int(random.integers(0, height)), int(random.integers(0, width))
        rows, columns = (
            Span(top, int(random.integers(top, height)) + 1),
            Span(left, int(random.integers(left, width)) + 1),
        )
        assert np.array_equal(raster.read(rows, columns).pixels, whole[slice(*rows), slice(*columns)])


@pytest.mark.parametrize("resample", [0.5, 0.25, 2.0])
def test_resampling_is_antialiased_bilinear(resample: float) -> None:
    pixels = picture(120, 200)
    raster = WorkingRaster(ArrayImage(pixels), at(resample))
    found = raster.read(Span(0, raster.size[0]), Span(0, raster.size[1])).pixels
    source = torch.from_numpy(pixels).permute(2, 0, 1)[None].double()
    expected = interpolate(source, size=raster.size, mode="bilinear", antialias=True)[0].permute(1, 2, 0).numpy()
    assert np.abs(found - expected).max() <= 0.51


def test_what_cannot_be_read_is_narrowed_down_and_white() -> None:
    pixels = picture(700, 900)
    raster = WorkingRaster(Torn(pixels, (300, 520, 5, 5)), at(1.0))
    region = raster.read(Span(10, 690), Span(20, 880))
    assert [(gap.rows, gap.columns) for gap in region.gaps] == [((512, 690), (256, 512))]
    assert "torn at 300, 520" in region.gaps[0].reason
    expected = pixels[10:690, 20:880].copy()
    expected[502:680, 236:492] = 255
    assert np.array_equal(region.pixels, expected)


@pytest.mark.parametrize("resample", [0.4, 1.0, 1.7])
def test_a_gap_does_not_depend_on_the_parts(resample: float) -> None:
    raster = WorkingRaster(Torn(picture(600, 700), (300, 300, 1, 1)), at(resample))
    height, width = raster.size

    def marked(rows: Span, columns: Span) -> np.ndarray:
        marks = np.zeros((rows.length, columns.length), dtype=bool)
        for gap in raster.read(rows, columns).gaps:
            marks[gap.rows.within(rows), gap.columns.within(columns)] = True
        return marks

    whole = marked(Span(0, height), Span(0, width))
    assert whole.any()
    assert not whole.all()
    random = np.random.default_rng(0)
    for _ in range(30):
        top, left = int(random.integers(0, height)), int(random.integers(0, width))
        rows, columns = Span(top, min(top + 150, height)), Span(left, min(left + 150, width))
        assert np.array_equal(marked(rows, columns), whole[slice(*rows), slice(*columns)])
