"""`seunet data prepare monuseg`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.data.manifest import read_manifest
from support.cli import seunet
from support.datasets import disc, he_pixels, imagescope_xml, tree_bytes, write_image, write_monuseg
from support.ring_oracle import covered_exactly


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_monuseg(tmp_path_factory.mktemp("monuseg"), train=3, test=1)


@pytest.fixture(scope="module")
def prepared(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dest = tmp_path_factory.mktemp("prepared") / "set"
    ran = seunet("data", "prepare", "monuseg", source, dest, "--window", 32, "--stride", 16)
    assert ran.code == 0, ran.err
    return dest


def test_images_masks_and_instances_are_written_and_tell_the_same(prepared: Path) -> None:
    manifest = read_manifest(prepared)
    assert [image.split for image in manifest.images] == ["train", "train", "train", "test"]
    for entry in manifest.images:
        image = np.asarray(Image.open(prepared / entry.image.path))
        mask = np.asarray(Image.open(prepared / entry.mask.path))
        instances = np.asarray(Image.open(prepared / str(entry.instances and entry.instances.path)))
        assert image.shape == (64, 64, 3)
        assert set(np.unique(instances)) == {0, 1, 2, 3, 4}
        assert ((instances > 0) == (mask == 1)).all()
        assert entry.class_pixels["1"] == int(mask.sum())
        assert entry.counts["instances"] == 4


def test_pixels_are_those_of_the_source(source: Path, prepared: Path) -> None:
    for entry in read_manifest(prepared).images:
        tif = next(source.rglob(f"{entry.name}.tif"))
        assert (np.asarray(Image.open(tif)) == np.asarray(Image.open(prepared / entry.image.path))).all()


def test_a_person_who_opens_a_mask_sees_colours(prepared: Path) -> None:
    with Image.open(prepared / read_manifest(prepared).images[0].mask.path) as mask:
        assert mask.mode == "P"
        assert mask.convert("RGB").getpixel((12, 14)) == (255, 214, 64)


def test_windows_are_a_table_and_no_pixels_are_copied(prepared: Path) -> None:
    manifest = read_manifest(prepared)
    assert len(manifest.windows.rows) == 4 * 9
    assert manifest.windows.rows[1] == (0, 16, 0)
    assert manifest.window_counts() == {"train": 27, "test": 9}
    assert len(list(prepared.rglob("*.png"))) == 4 * 3


def test_mpp_and_patient_come_from_the_files(prepared: Path) -> None:
    entry = read_manifest(prepared).images[0]
    assert (entry.mpp, entry.mpp_source) == (0.252, "annotation")
    assert (entry.name, entry.patient) == ("TCGA-00-1000-01Z-00-DX1", "TCGA-00-1000")


def test_clipped_vertices_are_counted_and_said(prepared: Path) -> None:
    entry = read_manifest(prepared).images[0]
    assert entry.counts["clipped_regions"] == 1
    beyond = sum(x > 63 for x, _ in disc(64, 50, 3))
    assert entry.counts["clipped_vertices"] == beyond > 10
    assert f"{beyond} vertices of 1 regions beyond the image: clipped" in entry.decisions


def test_the_same_source_gives_the_same_bytes_with_one_worker_or_two(
    source: Path, prepared: Path, tmp_path: Path
) -> None:
    options = ("--window", 32, "--stride", 16)
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a", *options, "--workers", 1).code == 0
    assert tree_bytes(tmp_path / "a") == tree_bytes(prepared)


def test_a_finished_set_prepared_again_is_left_as_it_is(source: Path, prepared: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in prepared.rglob("*")}
    ran = seunet("data", "prepare", "monuseg", source, prepared, "--window", 32, "--stride", 16)
    assert ran.code == 0
    assert "4 of 4 images were finished before" in ran.out
    assert {path: path.stat().st_mtime_ns for path in prepared.rglob("*")} == before


def test_what_was_decided_is_printed_with_windows_and_time(source: Path, tmp_path: Path) -> None:
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a", "--window", 32, "--stride", 16)
    assert "train: 3 images of 3 patients, 27 windows of 32 px" in ran.out
    assert "test: 1 images of 1 patients, 9 windows of 32 px" in ran.out
    assert "decision: a pixel is nucleus if its centre (x = column, y = row) is inside or on an outline" in ran.out
    assert "prepared in " in ran.out
    assert "[4/4] " in ran.err


def one_image(root: Path, rings: list[list[tuple[float, float]]], mpp: str | None = "0.25") -> Path:
    name = "TCGA-AA-0001-01Z-00-DX1"
    folder = root / "MoNuSegTestData"
    write_image(folder / f"{name}.tif", he_pixels(48, 1))
    (folder / f"{name}.xml").write_text(imagescope_xml(rings, mpp))
    return root


def test_overlaps_go_to_the_first_region_and_are_counted(tmp_path: Path) -> None:
    first, second = [(4, 4), (20, 4), (20, 20), (4, 20)], [(12, 12), (28, 12), (28, 28), (12, 28)]
    source = one_image(tmp_path / "src", [first, second, [(13, 13), (15, 13), (15, 15)]])
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 0
    entry = read_manifest(tmp_path / "a").images[0]
    instances = np.asarray(Image.open(tmp_path / "a" / "instances" / f"{entry.name}.png"))
    expected = np.zeros((48, 48), dtype=int)
    expected[covered_exactly(np.array(second, dtype=float), 48, 48)] = 2
    expected[covered_exactly(np.array(first, dtype=float), 48, 48)] = 1
    assert (instances == expected).all()
    assert entry.counts["overlap_px"] == 9 * 9 + 6
    assert entry.counts["instances"] == 2
    assert "regions that own no pixel (hidden, or between centres): 3" in entry.decisions


def test_traces_of_fewer_than_three_vertices_are_left_out_counted_and_named(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [disc(20, 20, 5), [(3, 3), (4, 3)], []])
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 0
    entry = read_manifest(tmp_path / "a").images[0]
    assert entry.counts["short_regions"] == 2
    assert "regions with fewer than 3 vertices left out: 2, 3" in entry.decisions


def test_a_far_off_vertex_is_an_error_and_with_clip_a_count(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [[(10, 10), (90, 10), (10, 40)]])
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 2
    assert (
        "seunet: TCGA-AA-0001-01Z-00-DX1.xml region 1: vertex 2 (90, 10) lies 43 px outside the 48×48 image; "
        "pass --clip or correct the file\n"
    ) in ran.err
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "b", "--clip").code == 0
    assert read_manifest(tmp_path / "b").images[0].counts["clipped_vertices"] == 1


def test_an_absurd_vertex_is_an_error_even_with_clip(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [[(10, 10), (1.7e308, -1.7e308), (10, 40)]])
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a", "--clip", "--no-progress")
    assert ran.code == 2
    assert ran.err == (
        "seunet: TCGA-AA-0001-01Z-00-DX1.xml region 1: vertex 2 (1.7e+308, -1.7e+308) lies 1.7e+308 px outside "
        "the 48×48 image; correct the file\n"
    )


def test_without_mpp_in_the_file_the_nominal_one_is_recorded_as_such(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [disc(20, 20, 5)], mpp=None)
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 0
    entry = read_manifest(tmp_path / "a").images[0]
    assert (entry.mpp, entry.mpp_source) == (0.25, "nominal (40×)")
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "b", "--mpp", 0.5).code == 0
    entry = read_manifest(tmp_path / "b").images[0]
    assert (entry.mpp, entry.mpp_source) == (0.5, "user")


def test_an_impossible_mpp_is_refused(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [disc(20, 20, 5)], mpp="2520")
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 2
    assert "DX1.xml MicronsPerPixel: 2520 µm per pixel is outside 0.05–20; pass --mpp with the right value" in ran.err


def test_two_annotation_layers_are_read_as_one_and_said(tmp_path: Path) -> None:
    source = one_image(tmp_path / "src", [disc(20, 20, 5)])
    xml = next(source.rglob("*.xml"))
    xml.write_text(xml.read_text().replace("</Annotation>", "</Annotation><Annotation><Regions/></Annotation>"))
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 0
    assert "2 annotation layers read as one" in read_manifest(tmp_path / "a").images[0].decisions


def test_validation_takes_whole_patients_from_training_only(source: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert seunet("data", "prepare", "monuseg", source, tmp_path / name, "--validation", 0.34).code == 0
    splits = [image.split for image in read_manifest(tmp_path / "a").images]
    assert sorted(splits) == ["test", "train", "train", "validation"]
    assert splits[3] == "test"
    assert tree_bytes(tmp_path / "a") == tree_bytes(tmp_path / "b")


@pytest.mark.parametrize("method", ["vahadane", "vahadane-tuned"])
def test_stain_normalisation_changes_pixels_and_is_recorded(source: Path, tmp_path: Path, method: str) -> None:
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a", "--stain", method).code == 0
    entry = read_manifest(tmp_path / "a").images[0]
    assert any(sentence.startswith(f"stain normalised ({method})") for sentence in entry.decisions)
    original = np.asarray(Image.open(next(source.rglob(f"{entry.name}.tif"))))
    assert (np.asarray(Image.open(tmp_path / "a" / entry.image.path)) != original).any()


def test_one_archive_alone_is_enough_and_said(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=0, test=1)
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 0
    assert "decision: no train archive in the source" in ran.out


def test_an_archive_nested_in_a_folder_of_its_own_name_is_found(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "flat", train=0, test=1)
    (tmp_path / "src" / "MoNuSegTestData").mkdir(parents=True)
    (source / "MoNuSegTestData").rename(tmp_path / "src" / "MoNuSegTestData" / "MoNuSegTestData")
    assert seunet("data", "prepare", "monuseg", tmp_path / "src", tmp_path / "a").code == 0


def test_three_patients_have_the_mpp_they_are_known_to_have_and_not_that_of_their_files(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=2, test=1)
    for path in sorted(source.rglob("TCGA-00-1000*")):
        path.rename(path.with_name(path.name.replace("TCGA-00-1000", "TCGA-HE-7129")))
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "set", "--window", 32, "--workers", 1)
    assert ran.code == 0, ran.err
    found = {image.patient: (image.mpp, image.mpp_source) for image in read_manifest(tmp_path / "set").images}
    assert found["TCGA-HE-7129"] == (0.5, "corrected")
    assert {known for patient, known in found.items() if patient != "TCGA-HE-7129"} == {(0.252, "annotation")}
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "user", "--mpp", 0.3, "--window", 32).code == 0
    assert {image.mpp for image in read_manifest(tmp_path / "user").images} == {0.3}
