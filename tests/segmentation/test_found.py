"""What a newcomer tries first: every kind of image into `seunet.segment`, everything that its result can do."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seunet
from seunet.errors import InputError
from seunet.images import encode_png
from seunet.models import ModelCard, ScaleUNet
from seunet.segmentation import FoundObject, Segmentation
from support.cli import seunet as command
from support.image_objects import Given, image_objects
from tests.support.networks import calm_model, picture
from tests.support.tissue_model import discs

PIXELS = picture(90, 70)


@pytest.fixture(scope="module")
def model() -> ScaleUNet:
    made = calm_model(widths=(5, 5), classes=2)
    made.card = ModelCard(mpp=0.25, class_names=("background", "nucleus"), instances=True)
    return made


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Given]:
    return image_objects(PIXELS, tmp_path_factory.mktemp("images"))


KINDS = (
    *("path", "Path", "PIL, RGB", "PIL, grey", "PIL, RGBA", "PIL, grey and opacity", "PIL, palette of greys"),
    *("NumPy, uint8", "NumPy, not contiguous", "NumPy, float64", "NumPy, float32", "NumPy, float16", "NumPy, RGBA"),
    *("NumPy, transparent", "NumPy, grey", "NumPy, grey [.., 1]", "NumPy, channels first", "tensor, uint8"),
    *("tensor, float of a network", "tensor, channels last", "tensor, bfloat16", "what has __array__"),
)


def test_the_list_of_the_matrix_is_the_list_of_the_tests(objects: dict[str, Given]) -> None:
    assert tuple(objects) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_is_segmented_as_its_pixels_are(
    kind: str, model: ScaleUNet, objects: dict[str, Given]
) -> None:
    image, pixels = objects[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = seunet.segment(image, model)
    expected = seunet.segment(pixels, model)
    if kind == "NumPy, float16":  # has eleven digits: all of 0 … 255 are told apart
        assert (found.labels == expected.labels).mean() > 0.99
    else:
        assert np.array_equal(found.probabilities, expected.probabilities)


def test_a_slide_is_taken_by_its_path_with_the_mpp_that_it_states(model: ScaleUNet, tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    Image.fromarray(PIXELS).save(path, dpi=(25400 / 0.2, 25400 / 0.2))
    found = seunet.segment(path, model)
    assert found.relative_scale == pytest.approx(1.25, rel=1e-3)
    with pytest.warns(UserWarning, match=r"0\.2 µm per pixel, but the user's 0\.25 is used"):
        assert seunet.segment(path, model, mpp=0.25).relative_scale == 1
    assert found.objects["Area µm^2"].sum() == pytest.approx(found.objects["Area px^2"].sum() * 0.04, rel=1e-2)


@pytest.mark.parametrize("mpp", [0.2, 0.3, 0.7, None])
def test_what_is_saved_is_what_the_command_writes_at_any_magnification(
    mpp: float | None, disc_model: Path, tmp_path: Path
) -> None:
    pixels = discs(80, 110, np.random.default_rng(3))
    Image.fromarray(pixels).save(tmp_path / "image.png")
    given = [] if mpp is None else ["--mpp", mpp]
    ran = command("segment", tmp_path / "image.png", "-m", disc_model, "-o", tmp_path / "out", *given)
    assert ran.code == 0, ran.err
    found = seunet.segment(pixels, disc_model, mpp=mpp)
    found.save(tmp_path / "saved")
    written = {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()}
    assert {"objects.geojson", "objects.csv", "counts.csv", "labels.tif", "overlay.png"} <= set(written)
    for name, content in written.items():
        assert content == (tmp_path / "out" / "image" / name).read_bytes(), name
    assert (found.plan.downsample != 1) == (mpp in (0.3, 0.7))
    assert len(found.objects) > 1
    assert {"Haematoxylin OD mean", "Confidence"} <= set(found.objects.columns)


def test_an_image_that_cannot_be_held_is_sent_to_the_command(
    model: ScaleUNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(encode_png(PIXELS))
    monkeypatch.setattr("seunet.segmentation.segment_array.MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(InputError, match=r"image\.png: 70×90 px are too many to be held; use `seunet segment`"):
        seunet.segment(path, model)


@pytest.fixture(scope="module")
def found(model: ScaleUNet) -> Segmentation:
    return seunet.segment(PIXELS, model, mpp=0.25)


def test_objects_are_a_table_of_classes_measurements_and_outlines(found: Segmentation) -> None:
    table = found.objects
    assert len(table) == len(found.to_geojson()["features"]) > 3
    assert table.columns[0] == "class"
    assert table.columns[-1] == "outline"
    assert {"Area px^2", "Area µm^2", "Circularity"} < set(table.columns)
    assert set(table["class"]) == {"nucleus"}
    assert table["Area px^2"].sum() <= (found.labels == 1).sum()
    one = table[0]
    assert isinstance(one, FoundObject)
    assert one.outline[0].shape[1] == 2
    x, y = one.outline[0].T
    inside = abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
    assert len(one.outline) > 1 or inside == pytest.approx(one.measurements["Area px^2"])
    assert [row.id for row in table][:2] == [row.id for row in table[:2]]
    assert "nucleus" in table._repr_html_()
    assert repr(table).startswith(f"<{len(table)} objects: class, Area px^2")


def test_a_column_that_is_not_there_is_named(found: Segmentation) -> None:
    with pytest.raises(InputError, match=r"the table has no column 'area' \(it has: class, Area px\^2"):
        found.objects["area"]


def test_others_read_the_table_by_the_interface_they_share(found: Segmentation) -> None:
    from shapely.geometry import shape

    features = found.objects.__geo_interface__["features"]
    shapes = [shape(one["geometry"]) for one in features]
    assert all(one.is_valid for one in shapes)
    assert sum(one.area for one in shapes) == pytest.approx(found.objects["Area px^2"].sum())


def test_what_is_saved_is_what_the_methods_give(found: Segmentation, tmp_path: Path) -> None:
    found.save(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"objects.geojson", "objects.csv", "counts.csv", "labels.tif", "overlay.png"}
    assert json.loads((tmp_path / "out" / "objects.geojson").read_text()) == found.to_geojson()
    with Image.open(tmp_path / "out" / "overlay.png") as saved:
        assert np.array_equal(np.asarray(saved), found.overlay())
    with pytest.raises(InputError, match=r"holds something else \(counts.csv\); choose another folder or pass over"):
        found.save(tmp_path / "out")
    found.save(tmp_path / "out", overwrite=True)


def test_a_notebook_shows_the_picture(found: Segmentation) -> None:
    assert found._repr_png_().startswith(b"\x89PNG")
    assert found.overlay().shape[0] > PIXELS.shape[0]
    assert found.overlay(45).shape[0] < found.overlay().shape[0]
