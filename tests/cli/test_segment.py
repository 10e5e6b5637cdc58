"""`seunet segment`, as a lab runs it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import seunet as package
from seunet.maths import FUSIONS
from seunet.segmentation import Choices
from support.cli import seunet
from support.slides import make_slide
from support.tiffs import spoil_tile, tiff_bytes
from tests.support.tissue_model import discs

FILES = (
    "objects.geojson",
    "objects.csv",
    "counts.csv",
    "labels.tif",
    "overlay.png",
    "heads.png",
    "heads.tif",
)


@pytest.fixture
def model(disc_model: Path) -> Path:
    return disc_model


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return discs(150, 201, np.random.default_rng(7))


@pytest.fixture
def image(tmp_path: Path, pixels: np.ndarray) -> Path:
    path = tmp_path / "in" / "a.png"
    path.parent.mkdir()
    Image.fromarray(pixels).save(path)
    return path


def result_bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_an_image_gets_a_folder_of_results_that_agree_with_each_other(
    image: Path, pixels: np.ndarray, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = seunet("segment", image, "-o", out, "-m", model, "--no-progress", "--no-split", "--min-area", "1px")
    assert (ran.code, ran.err) == (0, "")
    truth = ndimage.label(package.segment(pixels, model).labels)[1]
    dark = ndimage.label(pixels.mean(2) < 153)[1]
    assert 0.7 * dark <= truth <= 1.3 * dark
    assert ran.out == f"{out / 'a'}: {truth} nucleus\n"
    features = json.loads((out / "a" / "objects.geojson").read_text())["features"]
    assert len(features) == truth
    (row,) = csv.DictReader((out / "summary.csv").read_text().splitlines())
    assert (row["name"], row["nucleus:objects"], row["mpp"]) == ("a", str(truth), "")
    run = json.loads((out / "a" / "run.json").read_text())
    assert run["magnification"]["relative_scale"] is None
    assert sum(run["results"]["heads_won"]) == pytest.approx(1, abs=1e-5)
    assert sorted(path.name for path in (out / "a").iterdir()) == sorted([*FILES, "run.json"])


def test_the_scale_is_stated_and_a_result_of_before_calls_it_told(image: Path, model: Path, tmp_path: Path) -> None:
    out, run_json = tmp_path / "out", tmp_path / "out" / "a" / "run.json"
    command = ("segment", image, "-o", out, "-m", model, "--no-progress", "--scale")
    assert seunet(*command, "told").code == 0
    document = json.loads(run_json.read_text())
    assert (document["choices"]["scale"], document["scale"]["choice"]) == ("stated", "stated")
    document["choices"]["scale"] = document["scale"]["choice"] = "told"
    run_json.write_text(json.dumps(document))
    for name in ("told", "stated"):
        ran = seunet(*command, name)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.endswith(" (was there)\n")
    assert "told" not in seunet("segment", "--help").out


def test_what_is_done_is_left_alone_and_other_choices_are_refused(image: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert seunet("segment", image, "-o", out, "-m", model, "--no-progress").code == 0
    before = {path: path.stat().st_mtime_ns for path in (out / "a").iterdir()}
    ran = seunet("segment", image, "-o", out, "-m", model, "--no-progress")
    assert ran.code == 0
    assert ran.out.endswith(" nucleus (was there)\n")
    assert {path: path.stat().st_mtime_ns for path in (out / "a").iterdir()} == before
    ran = seunet("segment", image, "-o", out, "-m", model, "--no-progress", "--fusion", "mean")
    assert ran.code == 2
    assert "holds a result made with --fusion auto, this is --fusion mean; pass --overwrite" in ran.err
    ran = seunet("segment", image, "-o", out, "-m", model, "--no-progress", "--mpp", 0.5)
    line = "holds a result made with no µm per pixel stated, this is --mpp 0.5; pass --overwrite or choose another OUT"
    assert (ran.code, ran.err) == (2, f"seunet: {out / 'a'}: {line}\n")
    assert (
        seunet("segment", image, "-o", out, "-m", model, "--no-progress", "--fusion", "mean", "--overwrite").code == 0
    )


def test_a_known_mpp_scales_the_filters_and_gives_areas(image: Path, model: Path, tmp_path: Path) -> None:
    ran = seunet("segment", image, "-o", tmp_path / "o", "-m", model, "--mpp", 0.2, "--no-progress")
    assert (ran.code, ran.err) == (0, "")
    run = json.loads((tmp_path / "o" / "a" / "run.json").read_text())
    assert run["magnification"]["factor"] == 1.25
    assert run["image"]["mpp"]["source"] == "user"
    rows = list(csv.DictReader((tmp_path / "o" / "a" / "counts.csv").read_text().splitlines()))
    nucleus = next(row for row in rows if row["name"] == "nucleus")
    assert float(nucleus["area_um2"]) == pytest.approx(float(nucleus["area_px"]) * 0.04, abs=0.01)
    native = seunet(
        "segment", image, "-o", tmp_path / "n", "-m", model, "--mpp", 0.2, "--scale", "native", "--no-progress"
    )
    assert native.code == 0
    run = json.loads((tmp_path / "n" / "a" / "run.json").read_text())
    assert run["magnification"]["factor"] == 1
    power = seunet("segment", image, "-o", tmp_path / "p", "-m", model, "--magnification", 50, "--no-progress")
    assert power.err == "note: magnification 50 is read as 0.2 µm per pixel\n"
    assert result_bytes(tmp_path / "p" / "a") == result_bytes(tmp_path / "o" / "a")


def test_neither_tiles_nor_threads_change_a_byte(image: Path, model: Path, tmp_path: Path) -> None:
    found = {}
    for tile, threads in ((64, 1), (96, 2), (1024, 2)):
        out = tmp_path / f"{tile}-{threads}"
        arguments = ("-m", model, "--tile-size", tile, "--threads", threads, "--no-progress")
        assert seunet("segment", image, "-o", out, *arguments).code == 0
        found[tile] = result_bytes(out / "a")
    assert found[64] == found[96] == found[1024]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_fusion_can_be_chosen(fusion: str) -> None:
    assert Choices.model_validate({"fusion": fusion}).fusion == fusion


def test_one_bad_input_does_not_stop_the_others(image: Path, model: Path, tmp_path: Path) -> None:
    (image.parent / "b.png").write_bytes(b"not a picture at all")
    (image.parent / "a.jpg").write_bytes(image.read_bytes())  # the same name of a result
    ran = seunet("segment", image.parent, "-o", tmp_path / "o", "-m", model, "--no-progress")
    assert ran.code == 5
    lines = ran.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("seunet: ") for line in lines)
    assert any("b.png" in line for line in lines)
    assert ran.out.splitlines()[1:] == ["1 done, 2 failed"]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["a", "summary.csv"]


def test_a_region_that_cannot_be_read_is_told_and_marked_and_the_rest_is_done(model: Path, tmp_path: Path) -> None:
    pixels = discs(512, 512, np.random.default_rng(1))
    data = tiff_bytes([pixels], tile=(128, 128), compression="zlib")
    path = tmp_path / "spoilt.tif"
    path.write_bytes(spoil_tile(data, 0, 5))
    ran = seunet("segment", path, "-o", tmp_path / "o", "-m", model, "--no-progress")
    assert ran.code == 5
    assert "not analysed" in ran.err
    assert ran.out.endswith("nucleus (in part)\n")
    import tifffile

    labels = tifffile.imread(tmp_path / "o" / "spoilt" / "labels.tif")
    assert (labels[128:256, 128:256] == 255).all()
    assert (labels == 255).mean() < 0.3
    strict = seunet("segment", path, "-o", tmp_path / "s", "-m", model, "--no-progress", "--strict")
    assert strict.code == 2
    assert len(strict.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nowhere.png",), "nowhere.png: no such file or folder; check the path"),
        (("a.png", "--mpp", "0"), "--mpp 0.0: Input should be greater than or equal to 0.05"),
        (("a.png", "--mpp", "-1"), "--mpp -1.0: Input should be greater than or equal to 0.05"),
        (("a.png", "--mpp", "1e9"), "--mpp 1000000000.0: Input should be less than or equal to 20"),
        (("a.png", "--mpp", "nan"), "--mpp nan: Input should be a finite number"),
        (("a.png", "--mpp", "1", "--magnification", "40"), "--mpp and --magnification say the same; give --mpp alone"),
        (("a.png", "--magnification", "-4"), "--magnification -4.0: must be a positive number, e.g. 40"),
        (
            ("a.png", "--fusion", "median"),
            "--fusion median: Input should be 'auto', 'mean', 'p_dist', 'p_ens' or 'calibrated'",
        ),
        (("a.png", "--scale", "blind"), "--scale blind: Input should be 'auto', 'stated' or 'native'"),
        (("a.png", "--tile-size", "3"), "--tile-size 3: Input should be greater than or equal to 64"),
        (("a.png", "--min-area", "-4"), "--min-area -4: write µm² or pixels of the slide, e.g. 4um2 or 10px"),
        (("a.png", "--min-area", "4km2"), "--min-area 4km2: write µm² or pixels of the slide, e.g. 4um2 or 10px"),
        (("a.png", "--threads", "0"), "--threads 0: must be 1 or more"),
        (("a.png", "--device", "mps"), "--device mps: this machine has no usable mps device; use auto or cpu"),
        (("a.png", "--device", "gpu"), "unknown device 'gpu'; did you mean 'cpu'? (known: auto, cpu, cuda, mps)"),
        (("a.png", "-o", "a.png"), "a.png: is a file; choose a folder for OUT"),
        (
            ("a.png", "--dask", "tcp://127.0.0.1:9"),
            "--dask tcp://127.0.0.1:9: no scheduler answers there (ConnectionRefusedError); start one or correct it",
        ),
        (("a.png", "--workers", "0"), "--workers 0: must be 1 or more"),
        (
            ("a.png", "--workers", "2", "--dask", "tcp://127.0.0.1:9"),
            "--workers 2: the cluster at tcp://127.0.0.1:9 has its own; leave it out or use --dask local",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], line: str, image: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(image.parent)
    monkeypatch.setattr("seunet.cli.segment.CONNECT_SECONDS", 1)
    ran = seunet("segment", "-o", "out", "-m", model, *arguments, "--no-progress")
    assert (ran.code, ran.err, ran.out) == (2, f"seunet: {line}\n", "")


def test_a_model_without_names_is_used_and_said_to_have_none(image: Path, model: Path, tmp_path: Path) -> None:
    bare = package.load(model)
    bare.card = None
    bare.save_pretrained(tmp_path / "bare")
    ran = seunet("segment", image, "-o", tmp_path / "o", "-m", tmp_path / "bare", "--no-progress")
    assert ran.code == 0
    assert ran.err == "note: a.png: the model does not name its classes: they are called class 0, class 1\n"
    assert ran.out.endswith(" class_1\n")


def test_glass_alone_has_no_objects_and_says_so(model: Path, tmp_path: Path) -> None:
    Image.fromarray(np.full((2100, 2100, 3), 246, dtype=np.uint8)).save(tmp_path / "glass.png")
    ran = seunet("segment", tmp_path / "glass.png", "-o", tmp_path / "o", "-m", model, "--no-progress")
    assert (ran.code, ran.out) == (0, f"{tmp_path / 'o' / 'glass'}: 0 nucleus\n")
    assert ran.err == "note: glass.png: no tissue was found; --no-tissue looks at everything\n"


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "seunet.cli.main", "segment", *map(str, arguments), "--no-progress"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def killed_when(moment: Callable[[], bool], *arguments: object) -> bool:
    """Start a run and kill it at a moment; whether it was still there."""
    process = start(*arguments)
    while process.poll() is None:
        if moment():
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def test_killed_anywhere_and_run_again_a_slide_has_the_same_bytes(model: Path, tmp_path: Path) -> None:
    slide = make_slide(tmp_path / "slide.tif", 1024)
    options, result = (slide, "-m", model, "--tile-size", 128), tmp_path / "cut" / "slide"
    assert seunet("segment", *options, "-o", tmp_path / "whole", "--no-progress").code == 0

    def tiles_done() -> int:
        ledger = result / ".work" / "ledger.jsonl"
        return ledger.read_bytes().count(b"\n") - 1 if ledger.is_file() else 0

    moments = [
        lambda: tiles_done() >= 1,
        lambda: tiles_done() >= 12,
        lambda: any(result.glob(".objects.geojson*.part")),
    ]
    assert sum(killed_when(moment, *options, "-o", tmp_path / "cut") for moment in moments) >= 2
    assert seunet("segment", *options, "-o", tmp_path / "cut", "--no-progress").code == 0
    assert result_bytes(result) == result_bytes(tmp_path / "whole" / "slide")
    assert sorted(path.name for path in result.iterdir()) == sorted([*FILES, "run.json"])


def test_objects_that_cover_nearly_all_are_doubted(disc_model: Path, tmp_path: Path) -> None:
    Image.fromarray(np.full((60, 50, 3), 20, np.uint8)).save(tmp_path / "dark.png")
    ran = seunet("segment", tmp_path / "dark.png", "-m", disc_model, "-o", tmp_path / "out", "--no-progress")
    assert ran.code == 0
    doubt = "nucleus covers 100% of what was analysed; look at overlay.png: is it H&E, of 8 bits?"
    assert f"note: dark.png: {doubt}\n" in ran.err
    assert doubt in json.loads((tmp_path / "out" / "dark" / "run.json").read_text())["notes"]
    Image.fromarray(discs(64, 80, np.random.default_rng(0))).save(tmp_path / "tissue.png")
    assert "covers" not in seunet("segment", tmp_path / "tissue.png", "-m", disc_model, "-o", tmp_path / "out").err
