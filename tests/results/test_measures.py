"""What is measured of an object is right by hand and by another implementation, however it is read."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from seunet.results import measures
from seunet.results.find_objects import objects
from seunet.results.geojson import write_geojson
from seunet.results.label_plane import ArrayPlane
from seunet.results.measures import CONFIDENCE, HAEMATOXYLIN, MeasuredPlane, ObjectMeans
from support.geojson import read_geojson
from support.planes import nuclei_frame, random_codes


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_square_has_the_numbers_that_one_computes_by_hand(tmp_path: Path) -> None:
    codes = np.zeros((20, 30), dtype=np.uint8)
    codes[4:8, 10:16] = 1
    density, sure = np.zeros_like(codes), np.full_like(codes, 51)
    density[4:8, 10:13], density[4:8, 13:16] = 40, 80
    planes = {
        HAEMATOXYLIN: MeasuredPlane(ArrayPlane(density), 100.0),
        CONFIDENCE: MeasuredPlane(ArrayPlane(sure), 255.0),
    }
    frame = nuclei_frame(scale=2.0, offset=(3, 5), mpp=0.5)
    table = tmp_path / "objects.csv"
    path = tmp_path / "objects.geojson"
    write_geojson(path, objects(ArrayPlane(codes), frame), frame, means=ObjectMeans(planes), table=table)
    (row,) = rows_of(table)
    (feature,) = read_geojson(path)["features"]
    assert row["id"] == feature["id"]
    assert {key: row[key] for key in row if key != "id"} == {
        "class": "nucleus",
        "x_px": "23",
        "y_px": "7",
        "area_px": "96",
        "area_um2": "6",
        "diameter_px": f"{2 * math.sqrt(96 / math.pi):.2f}",
        "diameter_um": f"{2 * math.sqrt(6 / math.pi):.2f}",
        "circularity": str(feature["properties"]["measurements"]["Circularity"]),
        "haematoxylin_od": "0.6",
        "confidence": "0.2",
    }
    measured = feature["properties"]["measurements"]
    assert (measured["Haematoxylin OD mean"], measured["Confidence"]) == (0.6, 0.2)


def test_means_are_those_of_another_implementation_however_few_rows_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    codes = random_codes(random, 90, 70, codes=2)
    values = random.integers(0, 256, codes.shape, dtype=np.uint8)
    frame = nuclei_frame()
    numbered, count = ndimage.label(codes == 1)
    expected = sorted(ndimage.mean(values / 100, numbered, np.arange(1, count + 1)))
    texts = set()
    for block_bytes, kept in ((1 << 20, 24), (140, 2), (1, 1)):
        monkeypatch.setattr(measures, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(measures, "KEPT_BLOCKS", kept)
        means = ObjectMeans({HAEMATOXYLIN: MeasuredPlane(ArrayPlane(values), 100.0)})
        table = tmp_path / "objects.csv"
        found = objects(ArrayPlane(codes), frame, split=False, band_rows=11)
        write_geojson(tmp_path / "objects.geojson", found, frame, means=means, table=table)
        texts.add(table.read_bytes())
    assert len(texts) == 1
    got = sorted(float(row["haematoxylin_od"]) for row in rows_of(table) if row["class"] == "nucleus")
    assert got == pytest.approx(expected, abs=6e-4)
    assert {row["confidence"] for row in rows_of(table)} == {""}


def test_without_a_size_of_pixels_nothing_is_in_micrometres(tmp_path: Path) -> None:
    codes = np.ones((5, 5), dtype=np.uint8)
    frame = nuclei_frame(mpp=None)
    write_geojson(tmp_path / "a.geojson", objects(ArrayPlane(codes), frame), frame, table=tmp_path / "a.csv")
    (row,) = rows_of(tmp_path / "a.csv")
    assert (row["area_um2"], row["diameter_um"], row["area_px"]) == ("", "", "25")
