"""Objects as `seunet segment` finds them, scored against true nuclei, and against themselves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from seunet.evaluation.objects.agreement import VARIANTS, Variant, scores
from seunet.evaluation.objects.as_segment import found_objects
from seunet.evaluation.objects.scores import image_scores, set_scores
from seunet.maths import ring_pixels
from seunet.models import load
from support.cli import seunet
from support.datasets import write_image
from support.geojson import read_geojson
from tests.support.scale_estimators import saying
from tests.support.tissue_model import dark_disc_model

PALE, DARK = (235, 190, 215), (90, 50, 130)


def nuclei(side_px: int = 96, step_px: int = 16, radius_px: int = 5) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Dark discs in rows on pale pink, and their numbers."""
    numbers = np.zeros((side_px, side_px), dtype=np.uint16)
    rows, columns = np.mgrid[:side_px, :side_px]
    places = [(y, x) for y in range(8, side_px, step_px) for x in range(8, side_px, step_px)]
    for number, (y, x) in enumerate(places, start=1):
        numbers[(rows - y) ** 2 + (columns - x) ** 2 <= radius_px**2] = number
    pixels = np.where(numbers[..., None] > 0, DARK, PALE).astype(np.float64)
    return np.clip(pixels + np.random.default_rng(0).normal(0, 3, pixels.shape), 0, 255).astype(np.uint8), numbers


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a set of two images whose nuclei are known one by one, and a folder of images alone."""
    root = tmp_path_factory.mktemp("objects")
    dark_disc_model(root / "model")
    for number, step in enumerate((16, 24)):
        pixels, numbers = nuclei(step_px=step)
        write_image(root / "lab" / "images" / f"N{number}.png", pixels)
        write_image(root / "lab" / "masks" / f"N{number}.png", numbers)
    write_image(root / "images" / "N1.png", nuclei(256, 24)[0])
    write_image(root / "images" / "small.png", nuclei(96)[0])
    (root / "lab" / "table.csv").write_text("image,split,mpp\nN0.png,test,0.25\nN1.png,test,0.25\n")
    options = ("--kind", "instances", "--table", root / "lab" / "table.csv", "--window", 48)
    assert seunet("data", "prepare", "folder", root / "lab", root / "set", *options).code == 0
    return root


@pytest.mark.parametrize("mpp", [None, 0.25, 0.45])
def test_objects_are_those_of_the_files_that_segment_writes(mpp: float | None, root: Path, tmp_path: Path) -> None:
    stated = () if mpp is None else ("--mpp", mpp)
    image = root / "images" / "N1.png"
    assert seunet("segment", image, "-o", tmp_path, "-m", root / "model", "--no-progress", *stated).code == 0
    painted = np.zeros((256, 256), dtype=np.int32)
    for number, feature in enumerate(read_geojson(tmp_path / "N1" / "objects.geojson")["features"], start=1):
        for ring in feature["geometry"]["coordinates"]:
            row, column, covered = ring_pixels(np.asarray(ring[:-1]) - 0.5, 256, 256)
            place = painted[row : row + covered.shape[0], column : column + covered.shape[1]]
            place[covered] = np.where(place[covered] == number, 0, number)  # holes come after their ring
    found = found_objects(np.asarray(Image.open(image)), load(root / "model"), mpp)
    assert found.numbers.max() > 50
    assert np.array_equal(found.numbers, painted)


def test_told_nothing_it_goes_by_the_estimated_scale(root: Path) -> None:
    model = load(root / "model")
    pixels = np.asarray(Image.open(root / "images" / "N1.png"))
    assert found_objects(pixels, model).relative_scale is None
    model.scale_estimator = saying(2.0)
    assert found_objects(pixels, model).relative_scale == 2.0
    assert found_objects(pixels, model, 0.25, "stated").relative_scale == 1.0


def test_evaluate_reports_objects_beside_the_iou(root: Path, tmp_path: Path) -> None:
    ran = seunet("evaluate", root / "model", root / "set", "-o", tmp_path, "--scales", "1", "--stated", "--no-panels")
    assert ran.code == 0
    assert "objects of 2 whole images, as `seunet segment` finds them:\n  told nothing, s = 1: IoU " in ran.out
    document = json.loads((tmp_path / "objects.json").read_text())
    told_nothing, stated = document["scores"]
    assert (told_nothing["true"], stated["true"]) == (52, 52)
    assert stated["aji"] > 0.8
    assert stated["pq"] == pytest.approx(stated["dq"] * stated["sq"], abs=0.02)
    assert "| mpp stated | 1 |" in (tmp_path / "objects.md").read_text()
    rows = list(csv.DictReader((tmp_path / "objects.csv").read_text().splitlines()))
    assert [(row["way"], row["image"]) for row in rows] == [
        (way, image) for way in ("estimated", "stated") for image in ("N0", "N1")
    ]
    assert all(0 < float(row["aji"]) <= 1 for row in rows)


def test_objects_at_many_scales_are_resumed_and_shrunk_in_both_ways(root: Path, tmp_path: Path) -> None:
    asked = ("evaluate", root / "model", root / "set", "-o", tmp_path, "--scales", "0.5,1", "--no-panels")
    more = ("--objects-at", "all", "--shrinking", "both", "--no-progress")
    assert seunet(*asked, *more).code == 0
    first = json.loads((tmp_path / "objects.json").read_text())
    assert [row["scale"] for row in first["scores"]] == [0.5, 1.0, None]
    averaged = json.loads((tmp_path / "averaging" / "objects.json").read_text())
    assert averaged["arguments"]["antialias"]
    assert averaged["results"][0] != first["results"][0]
    assert averaged["results"][1] == first["results"][1]
    assert json.loads((tmp_path / "averaging" / "evaluation.json").read_text())["arguments"]["antialias"]
    broken = {name: value for name, value in first.items() if name != "scores"} | {"results": first["results"][:1]}
    (tmp_path / "objects.partial.json").write_text(json.dumps(broken))
    (tmp_path / "objects.json").unlink()
    assert seunet(*asked, *more).code == 0
    again = json.loads((tmp_path / "objects.json").read_text())
    assert {**again, "clock": 0} == {**first, "clock": 0}


def test_a_set_without_instances_has_no_objects_and_nobody_is_asked(root: Path, tmp_path: Path) -> None:
    asked = ("evaluate", root / "model", root / "set", "-o", tmp_path, "--scales", "1", "--no-panels", "--no-objects")
    ran = seunet(*asked)
    assert ran.code == 0
    assert "objects of" not in ran.out
    assert not (tmp_path / "objects.json").exists()


def test_what_is_to_be_ignored_belongs_to_no_object() -> None:
    truth, found = np.zeros((8, 8), int), np.zeros((8, 8), int)
    truth[:4, :4], found[:4, :4], found[6:, 6:] = 1, 7, 8
    ignored = np.zeros((8, 8), bool)
    ignored[5:] = True
    scored = image_scores(truth, found, ignored)
    assert (scored["aji"], scored["found"], scored["both_px"], scored["either_px"]) == (1.0, 1, 16, 16)


def test_an_image_without_any_object_is_left_out_of_the_means() -> None:
    empty = image_scores(np.zeros((4, 4), int), np.zeros((4, 4), int), np.zeros((4, 4), bool))
    full = image_scores(np.ones((4, 4), int), np.ones((4, 4), int), np.zeros((4, 4), bool))
    assert set_scores([empty, full])["aji"] == 1.0
    assert set_scores([empty])["aji"] is None


def test_agreement_needs_no_masks_and_what_is_too_small_is_named(root: Path, tmp_path: Path) -> None:
    asked = ("evaluate", "--agreement", root / "model", root / "images", "-o", tmp_path, "--no-progress")
    ran = seunet(*asked)
    assert (ran.code, ran.err) == (5, "seunet: small.png: 96×96 px; 256 per side are needed to be shrunk to ¼\n")
    assert ran.out.startswith("area of objects relative to the image as it is, 1 image:\n  shrunk to ½ ")
    document = json.loads((tmp_path / "agreement.json").read_text())
    (row,) = document["results"]
    assert set(row["variants"]) == {variant.name for variant in VARIANTS}
    assert row["area_share"] == pytest.approx(0.14, abs=0.05)
    assert "## By image" in (tmp_path / "agreement.md").read_text()
    with Image.open(tmp_path / "agreement.png") as picture:
        assert min(picture.size) >= 800
    before = (tmp_path / "agreement.json").read_bytes()
    assert seunet(*asked).code == 5
    assert (tmp_path / "agreement.json").read_bytes() == before


def test_where_nothing_can_be_compared_the_input_is_bad(root: Path, tmp_path: Path) -> None:
    ran = seunet("evaluate", "--agreement", root / "model", root / "images" / "small.png", "-o", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "small.png: 96×96 px; 256 per side are needed" in ran.err


def test_agreement_refuses_options_that_need_masks(root: Path, tmp_path: Path) -> None:
    ran = seunet("evaluate", "--agreement", root / "model", root / "images", "-o", tmp_path, "--split", "train")
    line = "--agreement needs no masks and goes without --split; leave one out"
    assert (ran.code, ran.err) == (2, f"seunet: {line}\n")


def test_another_way_of_shrinking_is_refused(root: Path, tmp_path: Path) -> None:
    ran = seunet("evaluate", root / "model", root / "set", "-o", tmp_path, "--shrinking", "bot")
    line = "unknown way of shrinking 'bot'; did you mean 'both'? (known: averaging, both, paper)"
    assert (ran.code, ran.err) == (2, f"seunet: {line}\n")


def test_a_model_of_regions_has_no_agreement(root: Path, tmp_path: Path) -> None:
    model = load(root / "model")
    assert model.card is not None
    model.card = model.card.model_copy(update={"instances": False})
    model.save_pretrained(tmp_path / "model")
    ran = seunet("evaluate", "--agreement", tmp_path / "model", root / "images", "-o", tmp_path / "o")
    line = "this seunet finds regions, not objects to count; --agreement compares areas of objects"
    assert (ran.code, ran.err) == (2, f"seunet: {line}\n")


def test_shares_count_what_is_within_20_percent_and_what_is_doubled() -> None:
    ratios = [
        {"½": 1.1, "¼": 2.5, "eosin × 0.7": 0.9, "eosin × 1.4": 1.0},
        {"½": 0.8, "¼": None, "eosin × 0.7": 1.0, "eosin × 1.4": 1.19},
    ]
    rows = scores([{"variants": {name: {"ratio": ratio} for name, ratio in each.items()}} for each in ratios])
    found = {row["variant"]: (row["cases"], row["within_20_percent"], row["above_2_times"]) for row in rows}
    assert found["½"] == (2, 0.5, 0)
    assert found["¼"] == (2, 0.0, 2)
    assert found["sizes"] == (4, 0.25, 2)
    assert found["stains"] == (4, 1.0, 0)


def test_more_eosin_darkens_green_and_leaves_the_size() -> None:
    pixels = nuclei(256)[0]
    more = Variant("eosin × 1.4", 1, 1.4).of(pixels)
    assert more.shape == pixels.shape
    assert more[..., 1].mean() < pixels[..., 1].mean() - 3
    assert Variant("½", 0.5).of(pixels).shape == (128, 128, 3)
