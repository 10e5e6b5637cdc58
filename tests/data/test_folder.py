"""`seunet data prepare folder`: any lab's own data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.data.formats.folder import FolderRules, plan_folder
from seunet.data.manifest import read_manifest
from seunet.data.prepare.plan import PrepareSettings
from seunet.errors import InputError
from support.cli import Ran, seunet
from support.datasets import class_map, write_csv, write_image, write_lab, write_nuclei
from support.training import tiny_file


def prepare(source: Path, dest: Path, *options: object) -> Ran:
    return seunet("data", "prepare", "folder", source, dest, "--no-progress", *options)


def test_class_masks_become_the_classes_of_the_map(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    ran = prepare(source, tmp_path / "a", "--class-map", class_map(tmp_path / "map.csv"), "--mpp", 0.5)
    assert ran.code == 0, ran.err
    manifest = read_manifest(tmp_path / "a")
    assert [entry.name for entry in manifest.classes] == ["other", "tumour", "stroma"]
    mask = np.asarray(Image.open(tmp_path / "a" / "masks" / "P0_0.png"))
    source_mask = np.asarray(Image.open(source / "masks" / "P0_0.png"))
    assert (mask == np.where(source_mask == 9, 255, source_mask)).all()
    assert (manifest.images[0].mpp, manifest.images[0].mpp_source) == (0.5, "user")
    assert "decision: codes ignored: 9" in ran.out
    assert "decision: no patient pattern or table: each image counts as a patient of its own" in ran.out


def test_instance_masks_keep_their_numbers(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    instances = np.zeros((48, 48), dtype=np.uint16)
    instances[2:9, 2:9] = 300
    instances[20:30, 20:25] = 7
    Image.fromarray(instances).save(source / "masks" / "P0_0.png")
    assert prepare(source, tmp_path / "a", "--kind", "instances", "--instance-class", "cell").code == 0
    manifest = read_manifest(tmp_path / "a")
    assert [entry.name for entry in manifest.classes] == ["background", "cell"]
    assert (np.asarray(Image.open(tmp_path / "a" / "instances" / "P0_0.png")) == instances).all()
    assert manifest.images[0].counts == {"instances": 2}
    assert manifest.images[0].mpp is None


def test_no_patient_is_in_two_splits_whatever_the_seed(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=10, images_each=3)
    class_map(tmp_path / "map.csv")
    rules = FolderRules(class_map=tmp_path / "map.csv", patient_pattern=r"^(P\d+)_", test=0.2)
    draws = set()
    for seed in range(20):
        plan = plan_folder(source, tmp_path / "a", PrepareSettings(validation=0.25, seed=seed), rules)
        splits = {(job["patient"], job["split"]) for job in plan.jobs}
        assert len(splits) == 10
        assert sorted(split for _, split in splits) == ["test"] * 2 + ["train"] * 6 + ["validation"] * 2
        draws.add(frozenset(splits))
    assert len(draws) > 10


def test_a_table_gives_patient_split_and_mpp(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=2, images_each=1)
    rows = [
        ("image", "patient", "split", "mpp"),
        ("P0_0.png", "Ann", "test", "0.5"),
        ("P1_0", "Bo", "train", ""),
    ]
    table = write_csv(tmp_path / "table.csv", rows)
    options = ("--class-map", class_map(tmp_path / "map.csv"), "--table", table)
    assert prepare(source, tmp_path / "a", *options).code == 0
    images = read_manifest(tmp_path / "a").images
    assert [(i.patient, i.split, i.mpp, i.mpp_source) for i in images] == [
        ("Ann", "test", 0.5, "table"),
        ("Bo", "train", None, "unknown"),
    ]


def test_a_patient_given_two_splits_is_an_error(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=2)
    rows = [("image", "patient", "split"), ("P0_0", "Ann", "test"), ("P0_1", "Ann", "train")]
    options = ("--class-map", class_map(tmp_path / "map.csv"), "--table", write_csv(tmp_path / "t.csv", rows))
    ran = prepare(source, tmp_path / "a", *options)
    assert ran.code == 2
    assert ran.err == ("seunet: patient Ann: in test (P0_0) and train (P0_1); give all images of a patient one split\n")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("code", "name")], "map.csv: header lacks class; columns are code,class"),
        ([("code", "class", "hue")], "map.csv: header has 'hue'; columns are code,class"),
        ([("code", "code", "class")], "map.csv: header repeats a column; columns are code,class"),
        ([("code", "class"), (0, "a"), (0, "b")], "map.csv: code 0 occurs twice; keep one line for it"),
        ([("code", "class"), (0, "a"), (1, "")], "map.csv: code 1 has no class; name it or write ignore"),
        (
            [("code", "class"), (0, "a"), ("x", "b")],
            "map.csv code: 'x' is not a whole number from 0 to 65535",
        ),
        ([("code", "class"), (0, "a")], "map.csv: 1 classes; a segmentation needs 2 to 255"),
        ([], "map.csv: is empty; its first line must be code,class"),
    ],
)
def test_a_class_map_that_cannot_be_meant_is_an_error(tmp_path: Path, rows: list[tuple], sentence: str) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    ran = prepare(source, tmp_path / "a", "--class-map", write_csv(tmp_path / "map.csv", rows))
    assert ran.code == 2
    assert sentence in ran.err


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"code,class\n\xff\xfe", "map.csv: not UTF-8 text (invalid start byte); save it as CSV, UTF-8"),
        (b'code,class\n0,"a\n', "map.csv line 2: unexpected end of data; save it as CSV again"),
    ],
)
def test_a_class_map_that_is_no_table_is_an_error(tmp_path: Path, data: bytes, sentence: str) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    (tmp_path / "map.csv").write_bytes(data)
    assert sentence in prepare(source, tmp_path / "a", "--class-map", tmp_path / "map.csv").err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "class masks need --class-map: a CSV with the columns code,class"),
        (("--kind", "polygons"), "unknown kind of mask 'polygons' (known: binary, classes, instances)"),
        (("--kind", "instances", "--patient-pattern", "("), "--patient-pattern '(': missing ), unterminated"),
        (("--kind", "instances", "--patient-pattern", "P."), "has 0 groups; put the patient in one ( )"),
        (
            ("--kind", "instances", "--patient-pattern", "^X(.)"),
            "P0_0: --patient-pattern '^X(.)' does not match; widen it or use --table",
        ),
        (("--kind", "instances", "--test", "1.5"), "`fraction` (=1.5) must be at least 0 and below 1"),
        (("--kind", "instances", "--window", "0"), "`window_px` (=0): Input should be greater than or equal to 1"),
        (("--kind", "instances", "--validation", "1"), "`validation` (=1.0): Input should be less than 1"),
        (("--kind", "instances", "--mpp", "99"), "--mpp: 99 µm per pixel is outside 0.05–20"),
        (
            ("--kind", "instances", "--stain", "vahadan"),
            "`stain` (='vahadan'): Input should be 'vahadane' or 'vahadane-tuned'",
        ),
    ],
)
def test_options_that_cannot_be_meant_are_errors(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    ran = prepare(source, tmp_path / "a", *options)
    assert ran.code == 2
    assert sentence in ran.err
    assert not (tmp_path / "a" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("image",), ("P0_0",), ("P9_9",)], "t.csv: P9_9 has no image; remove the row"),
        ([("image", "mpp"), ("P1_1", "1")], "P0_0.png: not in t.csv; add a row for it"),
        ([("image", "mpp"), ("P0_0", "fine")], "P0_0: mpp 'fine' is not a number; write it like 0.25"),
        ([("image", "mpp"), ("P0_0", "nan")], "P0_0 mpp: nan µm per pixel is outside 0.05–20"),
        ([("image",), ("P0_0",), ("P0_0.png",)], "t.csv: P0_0.png occurs twice; keep one row for it"),
        (
            [("image", "split"), ("P0_0", "tset")],
            "unknown split in t.csv (P0_0) 'tset'; did you mean 'test'?",
        ),
    ],
)
def test_a_table_that_does_not_fit_the_images_is_an_error(tmp_path: Path, rows: list[tuple], sentence: str) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    ran = prepare(source, tmp_path / "a", "--kind", "instances", "--table", write_csv(tmp_path / "t.csv", rows))
    assert ran.code == 2
    assert sentence in ran.err


def test_a_code_beyond_any_table_is_named(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    (source / "masks" / "P0_0.png").unlink()
    codes = np.zeros((48, 48), dtype=np.int32)
    codes[0, :3] = 2_000_000_000
    Image.fromarray(codes).save(source / "masks" / "P0_0.tif")
    ran = prepare(source, tmp_path / "a", "--class-map", class_map(tmp_path / "map.csv"))
    assert ran.code == 2
    assert "P0_0.tif: codes 2000000000 (3 px) are not in the class map (known: 0, 1, 2, 9); add them" in ran.err


def test_instances_beyond_sixteen_bits_are_an_error(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    (source / "masks" / "P0_0.png").unlink()
    Image.fromarray(np.full((48, 48), 70_000, dtype=np.int32)).save(source / "masks" / "P0_0.tif")
    ran = prepare(source, tmp_path / "a", "--kind", "instances")
    assert "P0_0.tif: instance 70000 is above 60,000; number the instances from 1" in ran.err


def test_every_fault_is_listed_in_one_run_and_skip_errors_keeps_the_rest(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=2, images_each=3)
    (source / "images" / "P0_0.png").write_bytes(b"not an image")
    write_image(source / "masks" / "P0_1.png", np.zeros((47, 48), dtype=np.uint8))
    (source / "masks" / "P0_2.png").unlink()
    (source / "images" / "P1_0.png").unlink()
    options = ("--class-map", class_map(tmp_path / "map.csv"))
    ran = prepare(source, tmp_path / "a", *options)
    assert ran.code == 2
    lines = ran.err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("seunet: P0_0.png: not a readable PNG, TIFF or JPEG (")
    assert lines[1] == "seunet: P0_1.png: mask is 48×47, its image 48×48; export both at one size"
    assert lines[2] == "seunet: P0_2.png: has no annotation in masks; add it or remove it"
    assert lines[3] == "seunet: P1_0.png: has no image in images; add it or remove it"
    assert not (tmp_path / "a" / "manifest.json").exists()
    ran = prepare(source, tmp_path / "a", *options, "--skip-errors")
    assert ran.code == 5
    assert len(ran.err.splitlines()) == 4
    manifest = read_manifest(tmp_path / "a")
    assert [image.name for image in manifest.images] == ["P1_1", "P1_2"]
    assert sum(sentence.startswith("left out: ") for sentence in manifest.decisions) == 4
    again = prepare(source, tmp_path / "a", *options)
    assert (again.code, again.err) == (5, ran.err)


def test_settings_of_the_library_are_checked_too() -> None:
    with pytest.raises(InputError, match=r"^`stride_px` \(=-1\): Input should be greater than or equal to 1$"):
        PrepareSettings(stride_px=-1)
    with pytest.raises(InputError, match=r"^`min_annotated` \(=1.0\): Input should be less than 1$"):
        PrepareSettings(min_annotated=1.0)


def test_masks_of_0_and_255_need_no_table(tmp_path: Path) -> None:
    source = write_nuclei(tmp_path / "src", images=2)
    for number, mask in enumerate(sorted((source / "masks").iterdir())):
        pixels = (np.asarray(Image.open(mask)) == 1).astype(np.uint8) * (255 if number else 1)
        write_image(mask, np.stack([pixels] * 3, axis=2) if number else pixels)
    ran = prepare(source, tmp_path / "set", "--binary", "--class-name", "gland")
    assert (ran.code, ran.err) == (0, "")
    assert "decision: binary masks: 0 is background, 1 and 255 are gland\n" in ran.out
    manifest = read_manifest(tmp_path / "set")
    assert [entry.name for entry in manifest.classes] == ["background", "gland"]
    for image in manifest.images:
        truth = np.asarray(Image.open(source / "masks" / f"{image.name}.png").convert("L")) > 0
        assert image.class_pixels["1"] == truth.sum() > 0


def test_a_binary_mask_with_grey_levels_is_named(tmp_path: Path) -> None:
    source = write_nuclei(tmp_path / "src", images=1)
    grey = np.zeros((64, 64), dtype=np.uint8)
    grey[:2, :3] = 128
    write_image(source / "masks" / "N0.png", grey)
    ran = prepare(source, tmp_path / "set", "--binary")
    text = "N0.png: codes 128 (6 px) are neither 0 nor 1 or 255; save the mask without grey levels, or leave out --"
    assert ran.code == 2
    assert text in ran.err


def test_windows_are_as_large_as_the_images_where_nothing_else_is_asked_for(tmp_path: Path) -> None:
    source = write_nuclei(tmp_path / "src", images=3, size_px=80)
    ran = prepare(source, tmp_path / "set", "--class-map", nuclei_map(tmp_path))
    assert ran.code == 0, ran.err
    assert "train: 3 images of 3 patients, 3 windows of 80 px\n" in ran.out
    assert "decision: windows of 80 px in place of 512, which many images do not fill\n" in ran.out
    assert "padding" not in ran.out
    assert list(read_manifest(tmp_path / "set").windows.rows) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert seunet("data", "verify", tmp_path / "set", "--no-progress").code == 0


def test_windows_asked_for_that_images_do_not_fill_are_made_and_the_padding_is_said(tmp_path: Path) -> None:
    source = write_nuclei(tmp_path / "src", images=2, size_px=80)
    options = ("--window", 100, "--min-annotated", 0, "--class-map", nuclei_map(tmp_path))
    ran = prepare(source, tmp_path / "set", *options)
    note = "36 % of the windows of 100 px is padding (the smallest image has 80×80): prepare the set with --window 80"
    assert note in ran.out
    config = tiny_file(tmp_path / "config.yaml", tmp_path / "set", recipe__epochs=1, recipe__batch=1)
    assert note in seunet("train", config, "-o", tmp_path / "run", "--no-progress").out


def nuclei_map(root: Path) -> Path:
    return write_csv(root / "classes.csv", [("code", "class"), (0, "other"), (1, "nucleus"), (9, "ignore")])


def test_a_folder_labels_inst_holds_instance_maps(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    (source / "masks").rename(source / "labels_inst")
    instances = np.zeros((48, 48), dtype=np.uint16)
    instances[2:9, 2:9], instances[20:30, 20:25] = 300, 7
    Image.fromarray(instances).save(source / "labels_inst" / "P0_0.png")
    assert prepare(source, tmp_path / "a").code == 0
    manifest = read_manifest(tmp_path / "a")
    assert manifest.images[0].counts == {"instances": 2}
    assert (np.asarray(Image.open(tmp_path / "a" / "instances" / "P0_0.png")) == instances).all()
