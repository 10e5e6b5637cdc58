"""The label TIFF as tifffile, OpenSlide and Pillow see it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openslide
import pytest
import shapely
import tifffile
from PIL import Image

from seunet.errors import StorageError
from seunet.results import label_tiff, pyramid
from seunet.results.find_objects import objects
from seunet.results.geojson import write_geojson
from seunet.results.label_tiff import InstanceImage, write_label_tiff
from seunet.results.pyramid import halved_by_majority, halved_by_mean, level_sizes
from support.planes import ArrayPlane, nuclei_frame, random_codes


@pytest.fixture
def codes() -> np.ndarray:
    codes = random_codes(np.random.default_rng(0), 700, 1301)
    codes[100:160, 30:90] = 255
    return codes


def test_readers_see_the_codes_the_levels_and_the_size_of_a_pixel(codes: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "labels.tif"
    write_label_tiff(path, ArrayPlane(codes), nuclei_frame(mpp=0.503))
    sizes = [(700, 1301), (350, 651), (175, 326)]
    half = halved_by_majority(codes)
    with tifffile.TiffFile(path) as file:
        levels = file.series[0].levels
        assert [level.shape for level in levels] == sizes
        assert np.array_equal(levels[0].asarray(), codes)
        assert np.array_equal(levels[1].asarray(), half)
        assert np.array_equal(levels[2].asarray(), halved_by_majority(half))
        assert not file.is_bigtiff
        names = json.loads(file.pages[0].description)["labels"]
        assert names == {"0": "background", "1": "nucleus", "2": "Drüse «µ»", "255": "not analysed"}
        assert "DateTime" not in file.pages[0].tags
    slide = openslide.OpenSlide(path)
    assert slide.level_dimensions == tuple((width, height) for height, width in sizes)
    assert float(slide.properties["openslide.mpp-x"]) == pytest.approx(0.503, rel=1e-6)
    assert np.array_equal(np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., 0], codes)
    assert np.array_equal(np.asarray(slide.read_region((0, 0), 1, (651, 350)))[..., 1], half)
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(image), codes)
    assert [entry.name for entry in tmp_path.iterdir()] == ["labels.tif"]


def test_the_bytes_do_not_depend_on_time_or_bands(
    codes: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_label_tiff(tmp_path / "a.tif", ArrayPlane(codes), nuclei_frame())
    monkeypatch.setattr(pyramid, "BAND_PIXELS", 1)
    write_label_tiff(tmp_path / "b.tif", ArrayPlane(codes), nuclei_frame())
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


def test_a_large_plane_is_a_bigtiff_and_without_mpp_there_is_no_resolution(
    codes: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_tiff, "SMALL_BYTES", 1000)
    write_label_tiff(tmp_path / "big.tif", ArrayPlane(codes), nuclei_frame(mpp=None))
    with tifffile.TiffFile(tmp_path / "big.tif") as file:
        assert file.is_bigtiff
        assert file.pages[0].tags["ResolutionUnit"].value == 1
        assert np.array_equal(file.asarray(), codes)
    slide = openslide.OpenSlide(tmp_path / "big.tif")
    assert "openslide.mpp-x" not in slide.properties


@pytest.mark.parametrize(("scale", "size"), [(0.505, (354, 657)), (2.37, (1659, 3083))])
def test_labels_are_on_the_slides_own_pixels_whatever_the_network_ran_on(
    scale: float, size: tuple[int, int], codes: np.ndarray, tmp_path: Path
) -> None:
    frame = replace(nuclei_frame(mpp=0.25 * scale), scale_to_level0=scale, slide_size=size, offset_x=7)
    write_label_tiff(tmp_path / "labels.tif", ArrayPlane(codes), frame)
    rows, columns = (
        [min(int((place + 0.5) / scale), length - 1) for place in range(count)]
        for count, length in zip(size, codes.shape, strict=True)
    )
    with tifffile.TiffFile(tmp_path / "labels.tif") as file:
        assert np.array_equal(file.asarray(), codes[rows][:, columns])
        facts = json.loads(file.pages[0].description)
    assert (facts["slide_px_per_px"], facts["geojson_origin_px"]) == (1, [7, 0])
    slide = openslide.OpenSlide(tmp_path / "labels.tif")
    assert float(slide.properties["openslide.mpp-x"]) == pytest.approx(0.25, rel=1e-6)


def test_where_the_slide_is_not_known_labels_say_how_large_their_pixels_are(codes: np.ndarray, tmp_path: Path) -> None:
    frame = replace(nuclei_frame(mpp=1.0), scale_to_level0=4.0)
    write_label_tiff(tmp_path / "labels.tif", ArrayPlane(codes), frame)
    with tifffile.TiffFile(tmp_path / "labels.tif") as file:
        assert np.array_equal(file.asarray(), codes)
        assert json.loads(file.pages[0].description)["slide_px_per_px"] == 4


@pytest.mark.parametrize(("scale", "size"), [(1.0, (140, 170)), (0.7131, (100, 121)), (2.3171, (324, 394))])
def test_an_instance_image_has_the_numbers_of_the_outlines(
    scale: float, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = ArrayPlane(random_codes(np.random.default_rng(3), 140, 170))
    frame = replace(nuclei_frame(), scale_to_level0=scale, slide_size=size)
    for name, band_pixels, held in (("a.tif", 1 << 24, 1 << 20), ("b.tif", 1, 5)):
        monkeypatch.setattr(label_tiff, "BAND_PIXELS", band_pixels)
        monkeypatch.setattr(label_tiff, "HELD_BOXES", held)
        with InstanceImage(tmp_path / name, plane, frame) as image:
            write_geojson(tmp_path / "objects.geojson", image.passing(objects(plane, frame)), frame)
            image.write()
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()
    numbers = tifffile.imread(tmp_path / "a.tif")
    assert (numbers.shape, numbers.dtype) == (size, np.uint32)
    features = json.loads((tmp_path / "objects.geojson").read_text())["features"]
    assert len(features) > 20
    centres = shapely.points(*(place + 0.5 for place in np.meshgrid(np.arange(size[1]), np.arange(size[0]))))
    for number, feature in enumerate(features, start=1):
        outline = shapely.from_geojson(json.dumps(feature["geometry"]))
        assert np.array_equal(numbers == number, shapely.contains(outline, centres)), number
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tif", "b.tif", "objects.geojson"]


def test_an_instance_image_that_has_no_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(StorageError, match=r"instances\.tif: cannot be written"),
        InstanceImage(tmp_path / "file" / "instances.tif", ArrayPlane(np.ones((2, 2), np.uint8)), nuclei_frame()),
    ):
        pass


def test_one_pixel_is_a_file_too(tmp_path: Path) -> None:
    write_label_tiff(tmp_path / "one.tif", ArrayPlane(np.ones((1, 1), dtype=np.uint8)), nuclei_frame())
    assert tifffile.imread(tmp_path / "one.tif").tolist() == [[1]]


def test_majority_and_mean_of_four() -> None:
    codes = np.array([[1, 2, 3, 3], [2, 2, 1, 1], [0, 1, 5, 6], [2, 3, 7, 6], [4, 9, 8, 8]], dtype=np.uint8)
    assert halved_by_majority(codes).tolist() == [[2, 3], [0, 6], [4, 8]]
    values = np.array([[0, 1, 255], [1, 0, 255], [9, 9, 1]], dtype=np.uint8)
    assert halved_by_mean(values).tolist() == [[1, 255], [9, 1]]
    assert level_sizes(5, 3, 2) == [(5, 3), (3, 2), (2, 1)]


def test_a_full_disk_is_one_line_and_leaves_nothing(
    codes: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tifffile.TiffWriter, "write", full)
    with pytest.raises(StorageError, match=r"labels\.tif: cannot be written \(No space left on device\)"):
        write_label_tiff(tmp_path / "labels.tif", ArrayPlane(codes), nuclei_frame())
    assert list(tmp_path.iterdir()) == []
