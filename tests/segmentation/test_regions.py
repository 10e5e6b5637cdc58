"""Regions of interest: read from GeoJSON, pixel by pixel as another implementation has them, and analysed alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
import tifffile
from PIL import Image

from seunet.errors import InputError
from seunet.segmentation.regions import Regions, read_regions, regions_file
from support.cli import seunet
from tests.support.tissue_model import discs

SQUARE = [[20, 30], [100, 30], [100, 120], [20, 120], [20, 30]]
HOLE = [[40, 50], [60, 50], [60, 80], [40, 80], [40, 50]]
STAR = [[120.3, 20.1], [190.7, 141.2], [110.2, 60.9], [120.3, 20.1]]


def feature(*rings: Any, kind: str = "Polygon", **properties: Any) -> dict[str, Any]:
    shape = list(rings) if kind == "Polygon" else [[ring] for ring in rings]
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": shape}, "properties": properties}


def written(path: Path, *features: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def regions_of(tmp_path: Path, *features: dict[str, Any], offset: tuple[int, int] = (0, 0)) -> Regions:
    return read_regions(written(tmp_path / "regions.geojson", *features), offset)


@pytest.mark.parametrize("downsample", [1.0, 2.0, 1.37, 0.5])
def test_the_pixels_of_regions_are_those_of_another_implementation(tmp_path: Path, downsample: float) -> None:
    found = regions_of(tmp_path, feature(SQUARE, HOLE), feature(STAR), offset=(4, 8))
    shape = shapely.union_all([shapely.Polygon(SQUARE, [HOLE]), shapely.Polygon(STAR)])
    rows, columns = (10, 120), (5, 140)
    y, x = ((np.arange(*span) + 0.5) * downsample for span in (rows, columns))
    truth = shapely.contains_xy(shape, *np.meshgrid(x - 4, y - 8))
    assert (found.mask(rows, columns, downsample) == truth).all()
    whole = found.mask((0, 200), (0, 200), downsample)
    assert (whole[10:120, 5:140] == truth).all()


def test_names_areas_and_the_regions_around_a_point(tmp_path: Path) -> None:
    found = regions_of(tmp_path, feature(SQUARE, HOLE, name="tumour"), feature(SQUARE, STAR, kind="MultiPolygon"))
    assert [region.name for region in found.regions] == ["tumour", "region 2"]
    assert found.regions[0].area_px == 80 * 90 - 20 * 30
    assert (found.at(30.0, 40.0), found.at(50.0, 60.0), found.at(1.0, 1.0)) == ([0, 1], [1], [])


def test_what_qupath_exports_is_read(tmp_path: Path) -> None:
    """A bare list of features, or one feature, with its own properties."""
    one = {**feature(SQUARE, objectType="annotation", isLocked=False), "id": "x"}
    for document in ([one], one):
        (tmp_path / "q.geojson").write_text(json.dumps(document))
        assert len(read_regions(tmp_path / "q.geojson").regions) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "is not GeoJSON; save the regions again"),
        ("3", "holds no features; save the regions as GeoJSON"),
        ("[]", "holds no region; draw one and save it again"),
        (json.dumps([feature([[1, 2]])]), "region 1: is not a polygon with numbers; draw it again"),
        (json.dumps([feature([[1, 2], [3, "x"], [4, 5]])]), "region 1: is not a polygon with numbers; draw it again"),
        (json.dumps([feature([[1, 2], [3, 1e12], [4, 5]])]), "region 1: is not a polygon with numbers; draw it again"),
        (json.dumps([feature(kind="LineString")]), "region 1: is a LineString; only polygons enclose an area"),
        ('[{"geometry": null}]', "region 1: is not a polygon with numbers; draw it again"),
    ],
)
def test_a_file_without_regions_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.geojson").write_text(text)
    with pytest.raises(InputError) as caught:
        read_regions(tmp_path / "r.geojson")
    assert said in str(caught.value)


def test_too_many_points_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seunet.segmentation.regions.MAX_VERTICES", 4)
    with pytest.raises(InputError, match="more than 4 points; simplify the regions"):
        regions_of(tmp_path, feature(SQUARE))


def test_a_folder_holds_a_file_for_each_image(tmp_path: Path) -> None:
    path = written(tmp_path / "slide.geojson", feature(SQUARE))
    assert regions_file(str(tmp_path), "slide") == path == regions_file(str(path), "other")
    with pytest.raises(InputError, match=r"no other.geojson in this folder; draw its regions or leave the image out"):
        regions_file(str(tmp_path), "other")
    with pytest.raises(InputError, match=r"--roi .*nothing: no such file or folder; check the path"):
        regions_file(str(tmp_path / "nothing"), "slide")


def test_regions_of_another_image_are_refused(disc_model: Path, tmp_path: Path) -> None:
    Image.fromarray(discs(60, 50, np.random.default_rng(7))).save(tmp_path / "a.png")
    far = [[x + 900, y + 900] for x, y in SQUARE]
    roi = written(tmp_path / "r.geojson", feature(far))
    ran = seunet("segment", tmp_path / "a.png", "-m", disc_model, "-o", tmp_path / "out", "--roi", roi, "--no-progress")
    assert ran.code == 2
    assert ran.err == "seunet: --roi: no region lies on a.png, 50×60 px; give the regions of this image\n"
    assert not (tmp_path / "out" / "a" / "run.json").exists()
    written(roi, feature(far), feature(SQUARE))
    assert seunet("segment", tmp_path / "a.png", "-m", disc_model, "-o", tmp_path / "out", "--roi", roi).code == 0


def test_only_the_regions_are_analysed_and_their_objects_counted(disc_model: Path, tmp_path: Path) -> None:
    pixels = discs(150, 201, np.random.default_rng(7))
    Image.fromarray(pixels).save(tmp_path / "a.png")
    roi = written(tmp_path / "r.geojson", feature(SQUARE, HOLE, name="left, upper"), feature(STAR))
    common = ("segment", tmp_path / "a.png", "-m", disc_model, "--mpp", 0.25, "--no-progress", "--min-area", "1px")
    assert seunet(*common, "-o", tmp_path / "all").code == 0
    ran = seunet(*common, "-o", tmp_path / "some", "--roi", roi, "--tile-size", 64)
    assert (ran.code, ran.err.count("warning")) == (0, 0)
    everywhere, here = (tifffile.imread(tmp_path / out / "a" / "labels.tif") for out in ("all", "some"))
    inside = read_regions(roi).mask((0, 150), (0, 201), 1.0)
    assert (here[~inside] == 255).all()
    assert (here[inside] == everywhere[inside]).all()
    features = json.loads((tmp_path / "some" / "a" / "objects.geojson").read_text())["features"]
    with (tmp_path / "some" / "a" / "regions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["region"] for row in rows] == ["left, upper", "region 2"]
    assert sum(int(row["objects"]) for row in rows) == len(features) > 0
    assert float(rows[0]["region_area_um2"]) == (80 * 90 - 20 * 30) * 0.25**2
    counted = sum(float(row["objects_area_px"]) for row in rows)
    assert counted == (here == 1).sum()
    with (tmp_path / "some" / "a" / "counts.csv").open(newline="") as file:
        areas = {row["name"]: float(row["area_px"]) for row in csv.DictReader(file)}
    assert (areas["analysed"], areas["not analysed"]) == (inside.sum(), (~inside).sum())
    again = seunet(*common, "-o", tmp_path / "some")
    assert again.code == 2
    assert "holds a result made with --roi " in again.err
