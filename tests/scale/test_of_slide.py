"""The scale of a slide: regions with tissue are found, read one at a time, and pooled."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import seunet
from seunet.errors import InputError
from seunet.images import ArrayImage, Bounds, RgbArray
from seunet.scale.estimator import ScaleEstimator, colour_fault, shipped_estimator
from seunet.scale.heads import SIZES
from seunet.scale.of_slide import ENOUGH_REGIONS, MOST_READS, estimate_slide, halton
from seunet.scale.regions import observe, tissue_share
from support.made_tissue import made_tissue
from support.real_data import real_data

TISSUE = made_tissue(1024, 0.5)


@pytest.fixture(scope="module")
def trusting() -> ScaleEstimator:
    shipped = shipped_estimator()
    return ScaleEstimator(shipped.templates, shipped.limits._replace(distance=1e9), shipped.mpp)


class Slide(ArrayImage):
    """40,000² pixels of glass with tissue in a quarter of it; some places cannot be read."""

    def __init__(self, broken_every: int = 0) -> None:
        super().__init__(TISSUE)
        self.bounds = Bounds(1000, 2000, 40_000, 40_000)
        self.reads: list[tuple[int, int, int, int]] = []
        self.broken_every = broken_every

    def read(self, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        self.reads.append((x, y, width_px, height_px))
        if self.broken_every and len(self.reads) % self.broken_every == 0:
            raise InputError("tile cannot be decoded")
        inside = x < 21_000 and y < 22_000
        return TISSUE if inside else np.full((height_px, width_px, 3), 243, dtype=np.uint8)


def test_a_slide_has_the_scale_of_its_tissue(trusting: ScaleEstimator) -> None:
    slide = Slide()
    found, part = estimate_slide(slide, estimator=trusting), seunet.estimate_scale(TISSUE, estimator=trusting)
    assert found.known
    assert found.relative_scale == part.relative_scale
    assert found.reason == f"{ENOUGH_REGIONS} of {ENOUGH_REGIONS} regions with tissue"
    assert len(slide.reads) < MOST_READS
    for x, y, width, height in slide.reads:
        assert x >= 1000
        assert y >= 2000
        assert x + width <= 41_000
        assert y + height <= 42_000
        assert width * height <= 1024 * 1024


def test_places_that_cannot_be_read_are_left_out(trusting: ScaleEstimator) -> None:
    assert estimate_slide(Slide(broken_every=2), estimator=trusting).known


def test_glass_alone_is_looked_through_and_said(trusting: ScaleEstimator) -> None:
    slide = Slide()
    slide.bounds = Bounds(25_000, 25_000, 9_000, 9_000)
    assert estimate_slide(slide, estimator=trusting).reason == "no tissue"
    assert len(slide.reads) == MOST_READS
    slide.bounds = Bounds(0, 0, 100, 9_000)
    assert estimate_slide(slide, estimator=trusting).reason == "too small: 100×9000 px; 128 per side are needed"


def test_a_small_image_is_read_whole(trusting: ScaleEstimator) -> None:
    found = estimate_slide(ArrayImage(TISSUE), 0.5, trusting)
    part = seunet.estimate_scale(TISSUE, 0.5, trusting)
    assert found == part


def test_places_fill_the_slide_evenly() -> None:
    places = np.array([[halton(number, 2), halton(number, 3)] for number in range(1, 37)])
    cells = {(int(x * 4), int(y * 4)) for x, y in places}
    assert len(cells) == 16


def test_of_fat_the_region_with_most_tissue_is_seen_where_a_network_looks_as_well(trusting: ScaleEstimator) -> None:
    fat = np.full((1024, 3072, 3), 243, dtype=np.uint8)
    for column in range(0, 3072, 50):
        fat[:, column : column + 4 + column // 1024] = TISSUE[:, :1]
    looked_at: list[RgbArray] = []

    def sureness(pixels: RgbArray) -> NDArray[np.float32]:
        looked_at.append(pixels)
        return np.ones((5, *pixels.shape[:2]), dtype=np.float32)

    assert estimate_slide(ArrayImage(fat), estimator=trusting).reason == "no tissue"
    assert estimate_slide(ArrayImage(fat), estimator=trusting, sureness=sureness).known
    assert len(looked_at) == len(SIZES)
    assert tissue_share(looked_at[0]) > tissue_share(fat)


def test_pigment_that_lets_no_light_through_does_not_hide_the_stains_from_a_network() -> None:
    soiled = TISSUE.copy()
    soiled[::3] = (25, 20, 15)
    seen = observe(soiled, lambda pixels: np.ones((5, *pixels.shape[:2]), dtype=np.float32))
    assert colour_fault(seen.covariance) is None
    assert np.allclose(seen.covariance, observe(TISSUE[np.arange(1024) % 3 > 0]).covariance, rtol=0.1)
    assert colour_fault(observe(soiled).covariance) is not None


@pytest.mark.skipif(real_data() is None, reason="the real data is not here")
def test_a_real_slide_of_half_the_resolution_is_told_to_be_one() -> None:
    data = real_data()
    assert data is not None
    openslide = pytest.importorskip("openslide")
    path = data / "wsi" / "CMU-1-Small-Region.svs"
    if not path.is_file():
        pytest.skip("the slide is packed")
    with openslide.OpenSlide(str(path)) as slide:
        pixels = np.ascontiguousarray(np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., :3])
    found = estimate_slide(ArrayImage(pixels))
    assert found.known
    assert found.relative_scale is not None
    assert 0.501 / 1.5 < found.relative_scale < 0.501 * 1.5
