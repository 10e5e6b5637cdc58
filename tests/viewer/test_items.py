"""Tiles show what the files hold, in the right place, at every zoom; and objects are found, measured and filtered."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from seunet.viewer import find_shown
from support.geojson import check_qupath
from support.planes import discs
from support.viewed import grid_of_circles, made_result, made_slide
from tests.support.served import Served, serving
from tests.viewer.conftest import SIDE_PX, Made

TRUTH = discs(SIDE_PX, SIDE_PX, grid_of_circles(SIDE_PX))


def picture(body: bytes) -> NDArray[np.uint8]:
    """Red, green, blue and, where there is one, opacity."""
    found = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_UNCHANGED)
    assert found is not None
    return found[..., [2, 1, 0, *range(3, found.shape[2])]].astype(np.uint8)


def column(served: Served, name: str) -> int:
    columns: list[str] = served.ask("api/progress/0").json["columns"]
    return columns.index(name)


@pytest.fixture(scope="module", autouse=True)
def _indexed(served: Served) -> None:
    for item in (0, 1):
        assert served.ask(f"api/objects/{item}").status == 200


def test_a_tile_of_labels_at_full_size_is_the_labels(served: Served) -> None:
    tile = picture(served.ask("tiles/0/labels/0/1/1").body)
    assert ((tile[..., 3] == 255) == (TRUTH[512:1024, 512:1024] == 1)).all()
    assert (tile[tile[..., 3] == 255][:, :3] == (255, 214, 64)).all()


@pytest.mark.parametrize("halvings", [0, 1, 2])
def test_a_tile_of_the_slide_shows_its_part(served: Served, halvings: int) -> None:
    tile = picture(served.ask(f"tiles/0/slide/{halvings}/0/0").body)
    side = min(512, -(-SIDE_PX // 2**halvings))
    assert tile.shape[:2] == (side, side)
    part = TRUTH[: side << halvings, : side << halvings].astype(np.float32)
    dark = cv2.resize(part, (side, side), interpolation=cv2.INTER_AREA)
    assert np.corrcoef(tile[..., 1].ravel(), dark.ravel())[0, 1] < -0.95


def test_from_afar_labels_fade_with_their_share_and_none_is_lost(tmp_path: Path) -> None:
    """A nucleus of a few pixels in a slide of many: by majority it would vanish from a coarse tile."""
    side = 8192
    slide = made_slide(tmp_path / "large.tif", side, [(4000.0, 4000.0, 300.0)])
    small = [(float(row), float(column), 9.0) for row in range(300, side, 600) for column in range(300, side, 600)]
    folder = made_result(tmp_path / "large", slide, side, small)
    with serving(find_shown([str(folder)]).shown) as served:
        opacity = picture(served.ask("tiles/0/labels/4/0/0").body)[..., 3].astype(np.float64)
    assert opacity.sum() / 255 * 16**2 == pytest.approx(len(small) * np.pi * 9**2, rel=0.2)
    assert cv2.connectedComponents((opacity > 0).astype(np.uint8))[0] - 1 == len(small)


def test_an_object_is_found_where_it_lies_and_nothing_between(served: Served) -> None:
    found = served.ask("api/at/0?x=250.2&y=150.1").json
    assert found["class"] == "nucleus"
    assert (found["x"], found["y"]) == pytest.approx((250.5, 150.5), abs=0.2)
    assert served.ask("api/at/0?x=300&y=200").json is None
    same = served.ask(f"api/object/0/{found['object']}").json
    assert same == found


def test_outlines_of_a_cell_are_those_of_the_file(served: Served, made: Made) -> None:
    features = json.loads((made.out / "first" / "objects.geojson").read_text())["features"]
    points = {
        (round(x * 8), round(y * 8)) for one in features for ring in one["geometry"]["coordinates"] for x, y in ring
    }
    seen = set()
    for row in range(2):
        for place in range(2):
            numbers = np.frombuffer(served.ask(f"cells/0/{place}/{row}").body, np.int16).astype(int)
            at = 0
            while at < len(numbers):
                count = numbers[at + 2]
                piece = numbers[at + 4 : at + 4 + 2 * count].reshape(-1, 2)
                seen |= {(int(x) + 8192 * place, int(y) + 8192 * row) for x, y in piece}
                at += 4 + 2 * count
    assert points <= seen


def test_the_table_is_sorted_and_paged(served: Served) -> None:
    area = column(served, "Area px^2")
    page = served.ask(f"api/objects/0?sort={area}&order=down&from=10&count=20").json
    values = [row["values"][area] for row in page["rows"]]
    assert (page["all"], page["selected"], len(values)) == (144, 144, 20)
    assert values == sorted(values, reverse=True)
    assert len(served.ask("api/objects/0?sort=class&count=500").json["rows"]) == 144


def test_a_filter_leaves_what_lies_in_its_range(served: Served) -> None:
    area = column(served, "Area px^2")
    least = np.pi * 20**2
    query = f"range={area}:{least:.0f}:"
    page = served.ask(f"api/objects/0?count=500&{query}").json
    expected = sum(radius >= 20 for _, _, radius in grid_of_circles(SIDE_PX))
    assert page["selected"] == expected == page["by_class"][0]
    assert all(row["values"][area] >= least for row in page["rows"])
    bits = np.unpackbits(np.frombuffer(served.ask(f"api/mask/0?{query}").body, np.uint8), bitorder="little")
    assert bits.sum() == expected
    histogram = served.ask(f"api/histogram/0?column={area}&{query}").json
    assert (sum(histogram["all"]), sum(histogram["selected"])) == (144, expected)
    assert served.ask("api/objects/0?classes=").json["selected"] == 0


def test_what_is_filtered_is_exported_as_csv_and_geojson(served: Served) -> None:
    query = f"range={column(served, 'Area px^2')}::{np.pi * 15**2:.0f}"
    expected = served.ask(f"api/objects/0?{query}").json["selected"]
    rows = list(csv.DictReader(io.StringIO(served.ask(f"api/export/0/objects.csv?{query}").body.decode())))
    document = served.ask(f"api/export/0/objects.geojson?{query}").json
    assert 0 < len(rows) == len(document["features"]) == expected < 144
    assert [row["id"] for row in rows] == [one["id"] for one in document["features"]]
    check_qupath(document)


def test_from_afar_filtered_objects_keep_their_area(served: Served) -> None:
    area = column(served, "Area px^2")
    rows = served.ask(f"api/objects/0?count=500&range={area}:1200:").json["rows"]
    tile = picture(served.ask(f"tiles/0/chosen/2/0/0?range={area}:1200:").body)
    total = tile[..., 3].astype(np.float64).sum() / 255 * 4**2
    assert total == pytest.approx(sum(row["values"][area] for row in rows), rel=0.07)


def test_a_zipped_file_of_objects_is_shown_too(made: Made, tmp_path: Path) -> None:
    folder = made_result(tmp_path / "zipped", made.slide, 400, [(100.0, 100.0, 20.0)])
    plain = folder / "objects.geojson"
    (folder / "objects.geojson.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    with serving(find_shown([str(folder)]).shown) as served:
        assert served.ask("api/at/0?x=100&y=100").json["object"] == 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"Feature","id":"a"}',
        b'{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[1,1e999],[3,4]]]},'
        b'"properties":{"classification":{"name":"n"}}}',
    ],
)
def test_outlines_that_are_none_are_one_line_and_the_rest_is_shown(made: Made, tmp_path: Path, line: bytes) -> None:
    folder = made_result(tmp_path / "broken", made.slide, 400, [(100.0, 100.0, 20.0)])
    (folder / "objects.geojson").write_bytes(b'{"type":"FeatureCollection","features":[\n' + line + b"\n]}\n")
    with serving(find_shown([str(folder)]).shown) as served:
        answer = served.ask("api/objects/0")
        assert answer.status == 422
        assert answer.json["error"].startswith("objects.geojson line 2: is not an outline; it was not written by")
        assert served.ask("tiles/0/labels/0/0/0").status == 200


def test_a_broken_slide_breaks_its_own_view_only(made: Made, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tif"
    broken.write_bytes(b"II*\x00" + b"\xff" * 400)
    with serving(find_shown([str(broken), str(made.out / "first")]).shown) as served:
        answers = {served.ask(f"api/item/{number}").json["name"]: number for number in (0, 1)}
        assert "broken.tif" in served.ask(f"api/item/{answers['broken.tif']}").json["error"]
        assert served.ask(f"tiles/{answers['broken.tif']}/slide/0/0/0").status in (404, 422)
        assert served.ask(f"tiles/{answers['first']}/slide/0/0/0").status == 200


def test_a_result_whose_slide_is_gone_shows_labels_and_outlines(made: Made, tmp_path: Path) -> None:
    folder = made_result(tmp_path / "alone", tmp_path / "gone.tif", 400, [(100.0, 100.0, 20.0)])
    with serving(find_shown([str(folder)]).shown) as served:
        facts = served.ask("api/item/0").json
        assert (facts["width"], facts["layers"]) == (400, ["labels"])
        assert "is gone" in facts["notes"][0]
        assert served.ask("api/at/0?x=100&y=100").json["class"] == "nucleus"


def test_the_scale_is_said_to_be_stated_or_estimated_with_its_interval(made: Made, tmp_path: Path) -> None:
    estimate = {"known": True, "mpp": 0.4, "mpp_low": 0.3, "mpp_high": 0.5}
    scale = {"source": "estimated", "stated_mpp": None, "estimate": estimate, "conflict": None}
    folder = made_result(tmp_path / "estimated", made.slide, 400, [(100.0, 100.0, 20.0)], run={"scale": scale})
    shown = find_shown([str(made.out / "first"), str(folder), str(made.slide)]).shown
    with serving(shown) as served:
        assert served.ask("api/item/0").json["scale"] == {"mpp": 0.5, "how": "stated"}
        assert served.ask("api/item/1").json["scale"] == {"mpp": 0.4, "how": "estimated", "low": 0.3, "high": 0.5}


def test_more_images_than_may_be_open_are_read_in_turn(tmp_path: Path) -> None:
    slides = [made_slide(tmp_path / f"{number}.tif", 64, [(30.0, 30.0, 5.0 + number)]) for number in range(6)]
    with serving(find_shown([str(path) for path in slides]).shown) as served:
        for _ in range(2):
            assert [served.ask(f"tiles/{number}/slide/0/0/0").status for number in range(6)] == [200] * 6
