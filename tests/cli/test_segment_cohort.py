"""Several images into one OUT: stopped, repeated, by several processes, from several folders."""

from __future__ import annotations

import csv
import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from support.cli import seunet
from support.slides import make_slide
from tests.cli.test_segment import start
from tests.support.tissue_model import discs


def test_ctrl_c_says_how_to_resume_and_the_command_resumes(disc_model: Path, tmp_path: Path) -> None:
    slide, result = make_slide(tmp_path / "slide.tif", 1024), tmp_path / "out" / "slide"
    options = (slide, "-m", disc_model, "--tile-size", 128, "-o", tmp_path / "out")
    process, ledger = start(*options), result / ".work" / "ledger.jsonl"
    while process.poll() is None and not (ledger.is_file() and ledger.read_bytes().count(b"\n") > 2):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "seunet: interrupted; repeat the command to resume\n")
    assert seunet("segment", *options, "--no-progress").code == 0
    clock = json.loads((result / "run.json").read_text())["clock"]
    assert 0 < clock["tiles_from_before"] < clock["tiles"]


def picture(path: Path, seed: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(discs(64, 80, np.random.default_rng(seed))).save(path)
    return path


def test_two_calls_into_one_out_leave_one_summary_of_all_and_folders_are_mirrored(
    disc_model: Path, tmp_path: Path
) -> None:
    slides, out = tmp_path / "slides", tmp_path / "out"
    for number, name in enumerate(("p1/s.webp", "p2/s.bmp")):
        picture(slides / name, number)
    broken = slides / "p0" / "deep" / "broken.png"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no picture")
    options = ("-m", disc_model, "-o", out, "--no-progress")
    ran = seunet("segment", slides, "--recursive", *options)
    assert ran.code == 5
    assert ran.out.splitlines()[-1] == "2 done, 1 failed"
    assert ran.err.startswith("seunet: broken.png: not an image or slide of a known format")
    assert sorted(path.name for path in out.iterdir()) == ["p1", "p2", "summary.csv"]
    third = picture(slides / "p3" / "t.png", 3)
    assert seunet("segment", third, *options).code == 0
    with (out / "summary.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert {name: row["status"] for name, row in rows.items()} == {
        "p0/deep/broken": "failed",
        "p1/s": "done",
        "p2/s": "done",
        "t": "done",
    }
    assert f"seunet: {rows['p0/deep/broken']['error']}" == ran.err.splitlines()[0]
    assert int(rows["p1/s"]["nucleus:objects"]) > 0
    picture(broken, 4)
    again = seunet("segment", slides, "-r", *options)
    assert again.out.splitlines()[-1] == "4 done (2 of them before)"
    assert (again.code, "failed" in (out / "summary.csv").read_text()) == (0, False)
    assert (out / "p1" / "s" / "labels.tif").is_file()


def test_labels_lie_on_the_slide_whatever_the_network_ran_on_and_small_objects_are_told_in_square_micrometres(
    disc_model: Path, tmp_path: Path
) -> None:
    path, found = picture(tmp_path / "a.png", 1), {}
    for mpp, least in ((1.5, "auto"), (1.5, "30px"), (0.25, "auto")):
        out = tmp_path / f"{mpp}-{least}"
        options = ("-m", disc_model, "-o", out, "--mpp", mpp, "--min-area", least, "--no-split", "--instances")
        assert seunet("segment", path, *options, "--no-progress").code == 0
        labels, numbers = (tifffile.imread(out / "a" / name) for name in ("labels.tif", "instances.tif"))
        run = json.loads((out / "a" / "run.json").read_text())
        features = json.loads((out / "a" / "objects.geojson").read_text())["features"]
        areas = [feature["properties"]["measurements"]["Area px^2"] for feature in features]
        assert labels.shape == numbers.shape == (64, 80)
        assert (numbers > 0).sum() <= (labels == 1).sum()
        assert numbers.max() <= len(features)
        if run["magnification"]["downsample"] == 1:
            assert all(isinstance(area, int) for area in areas)
        else:
            assert run["magnification"]["downsample"] < 1
        found[mpp, least] = run["results"]["min_area"] | {"smallest": min(areas, default=None)}
    assert found[1.5, "auto"]["px"] == pytest.approx(4 / 1.5**2, abs=0.01)
    assert (found[0.25, "auto"]["px"], found[0.25, "auto"]["working_px"]) == (64, 64)
    assert found[1.5, "30px"]["px"] == 30
    for one in found.values():
        assert one["smallest"] is None or one["smallest"] >= one["px"] - 0.01


def test_a_bare_least_area_is_said_to_be_of_square_micrometres(disc_model: Path, tmp_path: Path) -> None:
    ran = seunet(
        "segment",
        picture(tmp_path / "a.png", 1),
        "-m",
        disc_model,
        "-o",
        tmp_path / "o",
        "--min-area",
        8,
        "--no-progress",
    )
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "note: --min-area 8 is read as 8um2; write 8px for pixels of the slide",
        "note: a.png: no µm per pixel is known: objects from 10 px on are kept (--min-area 8um2)",
    ]


def test_progress_names_the_file_and_how_many_there_are(disc_model: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        picture(tmp_path / "in" / f"{number}.png", number)
    ran = seunet("segment", tmp_path / "in", "-m", disc_model, "-o", tmp_path / "o")
    assert ran.err.splitlines() == [
        "[  0%] 1 of 2 1.png: segmenting",
        "[100%] 1 of 2 1.png: writing the results",
        "[  0%] 2 of 2 2.png: segmenting",
        "[100%] 2 of 2 2.png: writing the results",
    ]
