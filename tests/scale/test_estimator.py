"""The shipped estimator on made tissue and on images of other things; its files; what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import seunet
from seunet.errors import InputError, ModelFileError
from seunet.scale.estimator import Limits, ScaleEstimate, ScaleEstimator, colour_fault, shipped_estimator
from seunet.scale.files import load_estimator, save_estimator
from seunet.scale.regions import REGION_PX, Region, observe, spread_boxes
from support.foreign_images import MADE, PHOTOGRAPHS, foreign_images
from support.made_tissue import made_tissue
from support.real_data import real_data

RgbArray = NDArray[np.uint8]


@pytest.fixture(scope="module")
def trusting() -> ScaleEstimator:
    """The shipped templates without the limit of their distance: made tissue is not tissue."""
    shipped = shipped_estimator()
    return ScaleEstimator(shipped.templates, shipped.limits._replace(distance=1e9), shipped.mpp)


@pytest.fixture(scope="module")
def by_scale(trusting: ScaleEstimator) -> dict[float, ScaleEstimate]:
    return {s: seunet.estimate_scale(made_tissue(400, s), estimator=trusting) for s in (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)}


def test_larger_structures_have_a_larger_scale(by_scale: dict[float, ScaleEstimate]) -> None:
    found = [by_scale[s].relative_scale for s in sorted(by_scale)]
    assert all(value is not None for value in found)
    assert found == sorted(found)  # type: ignore[type-var]


def test_doubling_an_image_doubles_its_scale(trusting: ScaleEstimator) -> None:
    tissue = made_tissue(512, 0.8)
    doubled = np.asarray(Image.fromarray(tissue).resize((1024, 1024), Image.Resampling.BILINEAR))
    one, two = (seunet.estimate_scale(image, estimator=trusting).relative_scale for image in (tissue, doubled))
    assert one is not None
    assert two is not None
    assert two / one == pytest.approx(2, rel=0.25)


def test_an_answer_has_an_interval_around_it_and_an_mpp(by_scale: dict[float, ScaleEstimate]) -> None:
    for found in by_scale.values():
        assert found.known
        assert found.low is not None
        assert found.high is not None
        assert found.relative_scale is not None
        assert found.low < found.relative_scale < found.high
        assert found.mpp == pytest.approx(0.25 / found.relative_scale)
        assert found.mpp_interval == pytest.approx((0.25 / found.high, 0.25 / found.low))
        assert "of 1 regions" in found.reason


def test_the_interval_widens_with_the_distance_in_octaves_between_its_knots() -> None:
    limits = Limits(100.0, (0.5, 0.6, 0.9, 1.0))
    assert [limits.half_interval(distance, 0.4) for distance in (0, 10, 20, 40, 80, 500)] == pytest.approx(
        [0.2, 0.2, 0.24, 0.36, 0.4, 0.4]
    )
    assert limits.half_interval(20 * 2**0.5, 0.4) == pytest.approx(0.3)
    shipped = shipped_estimator().limits.interval
    assert list(shipped) == sorted(shipped)


def test_the_mpp_is_relative_to_that_of_the_training(trusting: ScaleEstimator) -> None:
    tissue = made_tissue(512, 1.0)
    half = seunet.estimate_scale(tissue, 0.5, trusting)
    assert half.relative_scale is not None
    assert half.mpp == pytest.approx(0.5 / half.relative_scale)
    with pytest.raises(InputError, match=r"`mpp_of_training` \(=500\) must be within 0.05–20"):
        seunet.estimate_scale(tissue, 500.0)


@pytest.mark.parametrize("name", [*PHOTOGRAPHS, *MADE])
def test_other_things_get_no_answer(name: str) -> None:
    if name in PHOTOGRAPHS:
        pytest.importorskip("skimage")
    found = seunet.estimate_scale(foreign_images()[name]())
    assert not found.known
    assert found.reason
    assert found[:4] == (None, None, None, None)
    assert found.mpp_interval is None


def test_a_stain_never_seen_gets_an_answer() -> None:
    data = pytest.importorskip("skimage.data")
    found = seunet.estimate_scale(data.immunohistochemistry())
    assert found.known
    assert found.relative_scale is not None
    assert 0.4 < found.relative_scale < 1.6


def test_too_small_is_said() -> None:
    found = seunet.estimate_scale(made_tissue(100, 1.0))
    assert found.reason == "too small: 100×100 px; 128 per side are needed"


@pytest.mark.parametrize(
    ("image", "what"),
    [
        (np.zeros((200, 200), np.uint8), r"200×200, uint8"),
        (np.zeros((200, 200, 4), np.uint8), r"200×200×4, uint8"),
        (np.zeros((200, 200, 3)), r"200×200×3, float64"),
        (7, r"a number, int64"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(image: object, what: str) -> None:
    message = rf"^`image` \(={what}\) must be height × width × 3 of uint8; convert it to 8-bit RGB$"
    with pytest.raises(InputError, match=message):
        seunet.estimate_scale(image)


def test_large_images_are_sampled_and_small_ones_seen_whole() -> None:
    assert spread_boxes(1000, 1280) == [(0, 0, 1280, 1000)]
    large = spread_boxes(4000, 900)
    assert [(box.y, box.height_px) for box in large] == [(0, REGION_PX), (1488, REGION_PX), (2976, REGION_PX)]
    assert {box.width_px for box in large} == {900}
    assert len(spread_boxes(60_000, 80_000)) == 9


def test_glass_does_not_count(trusting: ScaleEstimator) -> None:
    """An image half of glass has the scale of its tissue."""
    tissue = made_tissue(640, 1.0)
    framed = np.full((640, 1280, 3), 244, dtype=np.uint8)
    framed[:, :640] = tissue
    whole, half = observe(tissue), observe(framed)
    assert (whole.tissue, half.tissue) == (1.0, 0.5)
    one, two = (trusting.estimate([region]).relative_scale for region in (whole, half))
    assert two == pytest.approx(one, rel=0.15)


def test_the_median_of_regions_is_taken_if_half_of_them_can_be_told(trusting: ScaleEstimator) -> None:
    regions = [observe(made_tissue(320, s)) for s in (0.9, 1.0, 1.1)]
    told = [trusting.estimate([region]).relative_scale for region in regions]
    assert trusting.estimate(regions).relative_scale == pytest.approx(np.median(np.array(told, dtype=float)))
    grey = regions[0]._replace(covariance=np.ones((3, 3)))
    assert trusting.estimate([regions[0], grey]).reason == "1 of 2 regions with tissue"
    refused = trusting.estimate([regions[0], grey, grey])
    assert (refused.known, refused.reason) == (False, "not coloured by stains: 0.0° from grey")
    glass = Region(np.full_like(grey.moments, np.nan), 0.0, np.zeros((3, 3)))
    assert trusting.estimate([glass]).reason == "no tissue"


def test_colours_of_stains_are_two_directions_away_from_grey() -> None:
    stain, other = np.array([0.65, 0.70, 0.29]), np.array([0.07, 0.99, 0.11])
    both = np.outer(stain, stain) + 0.05 * np.outer(other, other)
    assert colour_fault(both) is None
    assert "two stains" in str(colour_fault(np.outer(stain, stain)))
    assert "two stains" in str(colour_fault(np.diag([1.0, 0.9, 0.1])))
    assert "grey" in str(colour_fault(np.ones((3, 3)) + 0.01 * np.eye(3)))
    assert "one colour" in str(colour_fault(np.zeros((3, 3))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_estimator(shipped_estimator(), tmp_path)
    return tmp_path


def test_an_estimator_comes_back_the_same(folder: Path) -> None:
    loaded, shipped = load_estimator(folder), shipped_estimator()
    assert (loaded.limits, loaded.mpp) == (shipped.limits, shipped.mpp)
    for one, two in zip(loaded.templates, shipped.templates, strict=True):
        assert np.array_equal(one, two)


def _config(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        config = json.loads((folder / "scale.json").read_text())
        change(config)
        (folder / "scale.json").write_text(json.dumps(config))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "scale.json").unlink(), r"cannot be read \(No such file"),
        (lambda folder: (folder / "scale.json").write_text("{"), "scale.json: Invalid JSON"),
        (_config(lambda config: config.update(mpp=0)), "scale.json: `mpp` .=0.: Input should be greater"),
        (
            _config(lambda config: config.update(limits={"distance": 1.0, "interval": [1.0]})),
            r"`limits.interval` \(=\[1.0\]\): List",
        ),
        (_config(lambda config: config.update(version=1)), "'seunet-scale' version 1; this release reads"),
        (_config(lambda config: config.update(more=1)), r"`more` \(=1\): Extra inputs"),
        (lambda folder: (folder / "scale.safetensors").write_bytes(b"x"), "1 bytes where the config promises"),
        (_config(lambda config: config["tensors"].update(sha256="0")), "sha256 is not the config's"),
    ],
)
def test_spoilt_files_are_refused_in_one_line(folder: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(folder)
    with pytest.raises(ModelFileError, match=message) as error:
        load_estimator(folder)
    assert "\n" not in str(error.value)


def test_the_name_is_light_until_it_is_used() -> None:
    code = "import sys, seunet; assert 'estimate_scale' in dir(seunet); assert not {'cv2', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(real_data() is None, reason="the real data is not here")
@pytest.mark.parametrize("patient", ["HE-7128", "HE-7129", "HE-7130"])
def test_the_half_scale_images_of_monuseg_are_seen_to_be_so(patient: str) -> None:
    """Labelled 40× as all others, and never part of the fit."""
    data = real_data()
    assert data is not None
    found = sorted(data.glob(f"monuseg/train/**/TCGA-{patient}-01Z-00-DX1.*"))
    images = [path for path in found if path.suffix in (".tif", ".png") and "label" not in str(path)]
    if not images:
        pytest.skip("the images are packed")
    estimate = seunet.estimate_scale(np.asarray(Image.open(images[0]).convert("RGB")))
    assert estimate.known
    assert estimate.high is not None
    assert estimate.high < 0.75
