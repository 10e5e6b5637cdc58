"""A second network on the demo's page: its results are packed with what made them, and shown beside ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pictures import demo as command
from seunet.errors import InputError
from seunet.evaluation import RivalFacts, System, at_scales, counts_table, demo, pack_rival, unpack_rival
from seunet.evaluation.demo import SCALES, Sample, as_json, page, rival_of
from seunet.evaluation.page import as_html, write_pictures
from seunet.segmentation import Choices
from seunet.viewer import find_shown
from tests.support.tissue_model import discs

FACTS = RivalFacts(name="a network", label="net", command="make", commit="0123456789ab", config={"model": "unet"})


@pytest.fixture(scope="module")
def small() -> Sample:
    return Sample(discs(160, 160, np.random.default_rng(1)), 0.25)


def test_a_network_in_the_package_is_a_second_row_of_picture_table_and_json(
    disc_model: Path, small: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All the way: the command packs, the demo unpacks and shows, the viewer finds both."""
    packed, out = tmp_path / "rival.zip", tmp_path / "demo"
    arguments = ["--rival", str(disc_model), "--name", "dark discs", "--label", "discs", "--into", str(packed)]
    monkeypatch.setattr(command, "sample", lambda: small)
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    command.main()
    monkeypatch.setattr(demo, "shipped_rival", packed.read_bytes)
    ours = at_scales(small, Choices(model=str(disc_model), scale="native", overwrite=True), out, stated=True)
    rival = rival_of(ours, out)
    assert rival is not None
    systems = [System("ours", ours, {"model": "ours"}), rival]
    names = [row[0] for row in counts_table(systems).rows]
    assert names[4:7] == [f"{what}, dark discs" for what in ("objects", "area of objects", "IoU with 1 ×")]
    # The same network twice: what was packed is what is unpacked.
    assert counts_table(systems).rows[4][1:] == counts_table(systems).rows[1][1:]
    assert ours[2].objects > 10
    found = json.loads(as_json(systems, {"QuPath": 319}))
    assert found["counted_elsewhere"] == {"QuPath": 319}
    first, second = found["systems"]
    assert second["command"].startswith("python -m benchmarks.pictures.demo --rival ")
    assert second["config"]["model"] == "seunet"
    assert [size["objects"] for size in second["sizes"]] == [size["objects"] for size in first["sizes"]]
    assert first["sizes"][1] == {
        "scale": 0.5, "width_px": 80, "height_px": 80, "objects": ours[1].objects,
        "area_share": round(ours[1].share, 4), "iou_with_whole": first["sizes"][1]["iou_with_whole"],
        "estimated_mpp": None, "true_mpp": 0.5, "seconds": ours[1].seconds,
    }  # fmt: skip
    blocks = page("Title", "Source", ("After",), systems, out / "figures")
    write_pictures(blocks)
    html = as_html("Title", blocks)
    assert "made before by <code>python -m benchmarks.pictures.demo --rival" in html
    shown = {one.name: one for one in find_shown([str(out)]).shown}
    assert sorted(shown) == sorted([*SCALES, *(f"discs-{size}" for size in SCALES)])
    assert all(one.slide is not None and one.notes == () for one in shown.values())


def test_without_such_a_file_the_demo_shows_ours_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "shipped_rival", lambda: None)
    assert rival_of([], tmp_path) is None


def test_a_packed_file_is_the_same_bytes_each_time_and_one_that_is_broken_is_one_line(tmp_path: Path) -> None:
    for size in ("half", "whole"):
        (tmp_path / size).mkdir()
        for name in ("run.json", "labels.tif", "objects.geojson"):
            (tmp_path / size / name).write_text(f"{name} of {size}")
    packed = pack_rival(FACTS, tmp_path, ["half", "whole"])
    assert packed == pack_rival(FACTS, tmp_path, ["half", "whole"])
    assert unpack_rival(packed, tmp_path / "out", ["half", "whole"]) == FACTS
    assert (tmp_path / "out" / "net-whole" / "labels.tif").read_text() == "labels.tif of whole"
    for broken, sizes in ((b"PK nothing", ["half"]), (packed[:-30], ["half"]), (packed, ["double"])):
        with pytest.raises(InputError, match=r"rival.zip: is not as it was packed \(.*\); install seunet again"):
            unpack_rival(broken, tmp_path / "other", sizes)


@pytest.mark.parametrize("label", ["../up", "a/b", "", "Unet"])
def test_a_label_that_is_no_name_of_a_folder_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="label"):
        RivalFacts(**{**FACTS.model_dump(), "label": label})
