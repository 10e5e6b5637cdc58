"""GeoJSON: what QuPath takes, the pixels it came from, and the same bytes each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from seunet.errors import InputError, StorageError
from seunet.results.find_objects import objects
from seunet.results.frame import Frame
from seunet.results.geojson import write_geojson
from support.geojson import check_qupath, painted, polygon_of, read_geojson
from support.planes import ArrayPlane, Codes, discs, nuclei_frame, random_codes


def written(codes: Codes, frame: Frame, path: Path, **options: bool) -> dict:
    count = write_geojson(path, objects(ArrayPlane(codes), frame), frame, **options)
    document = read_geojson(path)
    assert len(document["features"]) == count
    return document


@pytest.mark.parametrize("scale", [1.0, 0.5, 1.9834, 3.97, 0.01])
@pytest.mark.parametrize("smooth", [False, True])
def test_there_and_back_gives_the_same_labels(scale: float, smooth: bool, tmp_path: Path) -> None:
    for seed in range(3):
        codes = random_codes(np.random.default_rng(seed), 45, 52)
        frame = nuclei_frame(scale, offset=(17, 5))
        document = written(codes, frame, tmp_path / "objects.geojson", smooth=smooth)
        check_qupath(document)
        assert np.array_equal(painted(document, frame, 45, 52), codes)
        for feature in document["features"]:
            area = feature["properties"]["measurements"]["Area px^2"]
            if scale >= 0.5:
                assert abs(polygon_of(feature["geometry"]).area - area) <= 0.005 * area + 0.02


def test_a_feature_reads_as_documented(tmp_path: Path) -> None:
    codes = np.zeros((20, 20), dtype=np.uint8)
    codes[4:10, 2:12], codes[6:8, 4:6] = 2, 0
    frame = nuclei_frame(2.0, offset=(3, 0), regions=frozenset({2}))
    (feature,) = written(codes, frame, tmp_path / "objects.geojson")["features"]
    assert feature["geometry"]["coordinates"] == [
        [[1, 8], [21, 8], [21, 20], [1, 20], [1, 8]],
        [[5, 12], [5, 16], [9, 16], [9, 12], [5, 12]],
    ]
    # 40 pixel edges with 8 corners: 0.948 · (32 + 8 · √½) = 35.7 px; 4π · 56 / 35.7² = 0.552
    assert feature["properties"] == {
        "objectType": "annotation",
        "classification": {"name": "Drüse «µ»", "color": [0, 114, 178]},
        "measurements": {"Area px^2": 224, "Area µm^2": 14, "Diameter µm": 4.22, "Circularity": 0.552},
    }
    unknown = nuclei_frame(mpp=None)
    (feature,) = written(codes, unknown, tmp_path / "unknown.geojson")["features"]
    assert feature["properties"]["objectType"] == "detection"
    assert set(feature["properties"]["measurements"]) == {"Area px^2", "Diameter px", "Circularity"}


def test_the_same_plane_gives_the_same_bytes_zipped_or_not(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(3), 60, 60)
    frame = nuclei_frame(1.9834)
    paths = [tmp_path / name for name in ("a.geojson", "b.geojson", "a.geojson.gz", "b.geojson.gz")]
    for path, rows in zip(paths, (1, 60, 7, 13), strict=True):
        write_geojson(path, objects(ArrayPlane(codes), frame, band_rows=rows), frame)
    plain, packed = paths[0].read_bytes(), paths[2].read_bytes()
    assert plain == paths[1].read_bytes()
    assert packed == paths[3].read_bytes()
    assert gzip.decompress(packed) == plain
    assert packed[4:8] == bytes(4)  # no time


def test_ids_change_with_class_and_outline_only(tmp_path: Path) -> None:
    def identity(codes: Codes, frame: Frame) -> str:
        (feature,) = written(codes, frame, tmp_path / "one.geojson")["features"]
        return str(feature["id"])

    disc = discs(30, 30, [(15, 15, 6)])
    same = identity(disc, nuclei_frame())
    assert identity(disc, nuclei_frame(mpp=None)) == same
    assert identity(2 * disc, nuclei_frame()) != same
    assert identity(np.roll(disc, 1), nuclei_frame()) != same


def test_no_objects_are_a_document_too(tmp_path: Path) -> None:
    document = written(np.zeros((5, 5), dtype=np.uint8), nuclei_frame(), tmp_path / "none.geojson")
    check_qupath(document)
    assert document["features"] == []


def test_a_failure_midway_leaves_nothing_behind(tmp_path: Path) -> None:
    codes = np.zeros((64, 8), dtype=np.uint8)
    codes[2:5, 2:5], codes[60, 3] = 1, 9
    found = objects(ArrayPlane(codes), nuclei_frame(), band_rows=8)
    with pytest.raises(InputError, match="code 9"):
        write_geojson(tmp_path / "objects.geojson", found, nuclei_frame())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_geojson(tmp_path / "file" / "objects.geojson", [], nuclei_frame())


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"scale_to_level0": 0.0}, r"`scale_to_level0` \(=0.0\) must be"),
        ({"scale_to_level0": float("nan")}, r"`scale_to_level0` \(=nan\) must be"),
        ({"mpp": -1.0}, r"`mpp` \(=-1.0\) must be a positive number"),
        ({"class_names": ("a",)}, "1 class names and 2 colours"),
    ],
)
def test_a_wrong_frame_is_one_line(wrong: dict, text: str) -> None:
    right = {
        "scale_to_level0": 1.0,
        "offset_x": 0,
        "offset_y": 0,
        "mpp": None,
        "class_names": ("a", "b"),
        "class_colors": ((0, 0, 0), (1, 1, 1)),
    }
    with pytest.raises(InputError, match=text):
        Frame(**(right | wrong))
