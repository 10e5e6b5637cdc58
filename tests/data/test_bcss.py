"""`seunet data prepare bcss`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.data.formats.bcss import PUBLISHED, code_map
from seunet.data.manifest import read_manifest
from support.cli import seunet
from support.datasets import write_bcss, write_image


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bcss")
    source = write_bcss(root / "src", sites=("A1", "OL", "BH", "GM"), size_px=110)
    ran = seunet("data", "prepare", "bcss", source, root / "set", "--window", 44)
    assert ran.code == 0, ran.err
    assert "decision: test institutions: OL, LL, E2, EW, GM, S3 (found: GM, OL)" in ran.out
    return root / "set"


def test_twenty_two_codes_become_five_classes_and_ignore() -> None:
    table = code_map(PUBLISHED)
    assert len(table) == 22
    by_class = {target: {int(code) for code, to in table.items() if to == target} for target in (1, 2, 3, 4, 255)}
    assert by_class == {1: {1, 19, 20}, 2: {2}, 3: {3, 10, 11}, 4: {4}, 255: {0}}
    assert sum(to == 0 for to in table.values()) == 22 - 3 - 1 - 3 - 1 - 1


def test_the_mask_has_the_classes_of_the_codes(prepared: Path) -> None:
    entry = read_manifest(prepared).images[0]
    mask = np.asarray(Image.open(prepared / entry.mask.path))
    # 110 columns of 22 codes: code k in the columns 5k … 5k + 4.
    expected = [255, 1, 2, 3, 4, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert mask[0, ::5].tolist() == expected
    assert entry.class_pixels == {"0": 5 * 110 * 13, "1": 1650, "2": 550, "3": 1650, "4": 550, "255": 550}
    assert entry.counts["source_code_19_px"] == 550
    assert entry.instances is None


def test_the_split_is_by_institution_and_the_name_tells_patient_and_mpp(prepared: Path) -> None:
    images = read_manifest(prepared).images
    assert {image.patient: image.split for image in images} == {
        "TCGA-A1-A0S0": "train",
        "TCGA-BH-A0S2": "train",
        "TCGA-GM-A0S3": "test",
        "TCGA-OL-A0S1": "test",
    }
    assert {(image.mpp, image.mpp_source) for image in images} == {(0.25, "file name")}


def test_windows_cover_the_region_and_are_flush_with_its_end(prepared: Path) -> None:
    rows = [row[1:] for row in read_manifest(prepared).windows.rows if row[0] == 0]
    assert rows == [(x, y) for y in (0, 44, 66) for x in (0, 44, 66)]


def test_windows_with_too_little_annotated_area_are_left_out_and_counted(tmp_path: Path) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1",), size_px=88)
    name = next((source / "masks").iterdir())
    mask = np.ones((88, 88), dtype=np.uint8)
    mask[:44, :44] = 0
    mask[:21, 44:] = 0
    write_image(name, mask)
    ran = seunet("data", "prepare", "bcss", source, tmp_path / "a", "--window", 44, "--min-annotated", 0.5)
    manifest = read_manifest(tmp_path / "a")
    assert manifest.windows.rows == ((0, 44, 0), (0, 0, 44), (0, 44, 44))
    assert manifest.images[0].windows_left_out == 1
    assert "train: 1 images of 1 patients, 3 windows of 44 px (1 left out)" in ran.out
    assert "decision: windows with less than 50% annotated (not “ignore”) area are left out" in ran.out


def test_other_test_institutions_can_be_named(tmp_path: Path) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1", "OL"), codes=False)
    ran = seunet("data", "prepare", "bcss", source, tmp_path / "a", "--test-institutions", "A1,B2")
    assert "decision: test institutions: A1, B2 (found: A1)" in ran.out
    assert "decision: no gtruth_codes.tsv in the source: the published 22 codes used" in ran.out
    assert {image.patient: image.split for image in read_manifest(tmp_path / "a").images} == {
        "TCGA-A1-A0S0": "test",
        "TCGA-OL-A0S1": "train",
    }


def refused(source: Path, dest: Path) -> str:
    ran = seunet("data", "prepare", "bcss", source, dest, "--no-progress")
    assert ran.code == 2
    return ran.err


def test_a_code_beyond_the_table_is_an_error_that_counts_it(tmp_path: Path) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1",))
    mask = next((source / "masks").iterdir())
    pixels = np.array(Image.open(mask))
    pixels[0, :3] = 22
    write_image(mask, pixels)
    assert "MPP-0.2500.png: codes 22 (3 px) are not in the class map (known: 0, 1, 2" in refused(source, tmp_path / "a")


def test_a_mask_of_another_size_is_an_error(tmp_path: Path) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1",))
    write_image(next((source / "masks").iterdir()), np.ones((96, 95), dtype=np.uint8))
    assert "mask is 95×96, its image 96×96; export both at one size" in refused(source, tmp_path / "a")


def test_a_name_that_is_not_the_published_one_is_an_error(tmp_path: Path) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1",))
    for folder in ("masks", "rgbs_colorNormalized"):
        next((source / folder).iterdir()).rename(source / folder / "region1.png")
    assert "region1.png: name is not TCGA-…_xmin…_ymin…_MPP-…; restore the published name" in refused(
        source, tmp_path / "a"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("dcis\t20\n", ""), "gtruth_codes.tsv: label 'dcis' is missing; restore the published table"),
        (
            ("other\t21", "other\t20"),
            "gtruth_codes.tsv: a code or label occurs twice; restore the published table",
        ),
        (("other\t21", "other\tmany"), "gtruth_codes.tsv other: 'many' is not a whole number from 0 to 254"),
        (("label\t", "name\t"), "gtruth_codes.tsv: header lacks label; columns are label,GT_code"),
        (("fat\t9", "fat\t9\t9"), "gtruth_codes.tsv row 11: has 3 cells, the header 2; correct it"),
    ],
)
def test_a_damaged_code_table_is_an_error(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    source = write_bcss(tmp_path / "src", sites=("A1",))
    table = source / "meta" / "gtruth_codes.tsv"
    table.write_text(table.read_text().replace(*change))
    assert sentence in refused(source, tmp_path / "a")
