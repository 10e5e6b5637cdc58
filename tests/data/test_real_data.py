"""What only real data can show.  Skipped where it is absent; the whole set is `make bench-data`."""

from __future__ import annotations

import csv
import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.data.formats.bcss import CLASSES, PUBLISHED, code_map
from seunet.data.formats.imagescope import parse_annotation
from seunet.data.manifest import read_manifest
from seunet.data.prepare.one_image import _map_codes
from seunet.data.prepare.outlines import paint_regions
from seunet.data.verification import verify
from support.cli import seunet
from support.datasets import write_csv
from support.real_data import real_data

DATA = real_data()
pytestmark = pytest.mark.skipif(DATA is None, reason="no real data: set SEUNET_DATA or put it in ../shared/data")
ROOT = DATA or Path()


def original_rows() -> list[dict[str, str]]:
    with (ROOT / "monuseg" / "manifest.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["label_source"] == "xml"]


def test_masks_of_original_outlines_equal_the_published_instance_maps() -> None:
    rows = original_rows()
    assert len(rows) == 27
    for row in rows[::3]:
        base = ROOT / "monuseg" / row["split"]
        data = gzip.decompress((base / "annotations" / f"{row['name']}.xml.gz").read_bytes())
        painted = paint_regions(parse_annotation(data, row["name"]).regions, row["name"], 1000, 1000, clip=False)
        ours, theirs = (
            painted.instances > 0,
            np.asarray(Image.open(base / "labels_inst" / f"{row['name']}.png")) > 0,
        )
        assert (ours & theirs).sum() / (ours | theirs).sum() >= 0.995
        assert painted.counts["instances"] == int(row["instances_in_label"])


def test_published_images_are_prepared_and_verified(tmp_path: Path) -> None:
    names = ["TCGA-50-5931-01Z-00-DX1", "TCGA-B0-5710-01Z-00-DX1"]
    folder = tmp_path / "src" / "MoNuSeg 2018 Training Data"
    for sub in ("Tissue Images", "Annotations"):
        (folder / sub).mkdir(parents=True)
    for name in names:
        base = ROOT / "monuseg" / "train"
        shutil.copy(base / "images" / f"{name}.tif", folder / "Tissue Images")
        xml = gzip.decompress((base / "annotations" / f"{name}.xml.gz").read_bytes())
        (folder / "Annotations" / f"{name}.xml").write_bytes(xml)
    ran = seunet("data", "prepare", "monuseg", tmp_path / "src", tmp_path / "a")
    assert ran.code == 0, ran.err
    manifest = read_manifest(tmp_path / "a")
    assert manifest.window_counts() == {"train": 32}
    assert manifest.images[0].counts["short_regions"] == 1
    assert [image.mpp for image in manifest.images] == [0.2468, 0.252]
    assert verify(tmp_path / "a") == []


def test_bcss_patches_come_in_through_a_class_map(tmp_path: Path) -> None:
    names = [entry.name for entry in CLASSES] + ["ignore"]
    table = write_csv(tmp_path / "map.csv", [("code", "class"), *enumerate(names)])
    options = ("--class-map", table, "--mpp", 0.25, "--patient-pattern", r"^core_([A-Z0-9]+_[A-Z0-9]+)_x")
    ran = seunet("data", "prepare", "folder", ROOT / "bcss" / "patches", tmp_path / "a", *options, "--test", 0.4)
    assert ran.code == 0, ran.err
    manifest = read_manifest(tmp_path / "a")
    assert len(manifest.images) == 10
    assert len({image.patient for image in manifest.images}) == 5
    assert verify(tmp_path / "a") == []


def test_a_real_patch_with_the_original_codes_comes_in_through_its_code_table(tmp_path: Path) -> None:
    for kind in ("image", "mask"):
        (tmp_path / "src" / f"{kind}s").mkdir(parents=True)
        shutil.copy(ROOT / "bcss" / "code_patch" / f"{kind}.png", tmp_path / "src" / f"{kind}s" / "patch.png")
    names = {entry.code: entry.name for entry in CLASSES} | {255: "ignore"}
    rows = [(code, names[to]) for code, to in code_map(PUBLISHED).items()]
    table = write_csv(tmp_path / "map.csv", [("code", "class"), *rows])
    ran = seunet("data", "prepare", "folder", tmp_path / "src", tmp_path / "a", "--class-map", table)
    assert ran.code == 0, ran.err
    manifest = read_manifest(tmp_path / "a")
    with Image.open(ROOT / "bcss" / "code_patch" / "mask.png") as image:
        histogram = image.histogram()
    areas = {entry.name: manifest.images[0].class_pixels[str(entry.code)] for entry in manifest.classes}
    assert areas == {
        "tumour": histogram[1],
        "stroma": histogram[2],
        "inflammatory": histogram[3],
        "necrosis": histogram[4],
        "other": histogram[9],
    }


def test_areas_of_a_real_mask_equal_its_histogram() -> None:
    path = ROOT / "bcss" / "roi_masks" / "TCGA-AR-A0U1-DX1_xmin63681_ymin24922_MPP-0.2500.png"
    with Image.open(path) as image:
        histogram = image.histogram()
        mask, _ = _map_codes(np.asarray(image), code_map(PUBLISHED), path.name, "correct the mask")
    areas = np.bincount(mask.ravel(), minlength=256)
    assert areas[1] == histogram[1] + histogram[19] + histogram[20]
    assert areas[2] == histogram[2]
    assert areas[3] == histogram[3] + histogram[10] + histogram[11]
    assert areas[4] == histogram[4]
    assert areas[255] == histogram[0]
    assert areas.sum() == sum(histogram)
