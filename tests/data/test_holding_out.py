"""Weights are chosen by patients that were not learnt from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seunet.data import Manifest, hold_out, read_manifest
from seunet.data.formats.monuseg import PATIENT_CHARACTERS
from seunet.errors import InputError
from seunet.training import read_checkpoint, write_checkpoint
from support.cli import seunet
from support.datasets import class_map, write_lab
from support.real_data import real_data
from support.training import tiny_config, tiny_file, train_alone

OPTIONS = ("--window", 24, "--min-annotated", 0, "--workers", 1, "--no-progress")


def lab(root: Path, *options: object, patients: int = 5) -> Path:
    """A set of two images per patient, P0_0 … P4_1."""
    source = write_lab(root / "lab", patients=patients, images_each=2)
    by_patient = ("--patient-pattern", "^(P[0-9]+)_")
    chosen = ("--class-map", class_map(root / "map.csv"), *by_patient, *OPTIONS, *options)
    ran = seunet("data", "prepare", "folder", source, root / "set", *chosen)
    assert ran.code == 0, ran.err
    return root / "set"


@pytest.fixture(scope="module")
def two_each(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab(tmp_path_factory.mktemp("two-each"))


def changed(root: Path, **images: dict[str, object]) -> Manifest:
    """The manifest with some fields of some images replaced."""
    manifest = read_manifest(root)
    entries = tuple(image.model_copy(update=images.get(image.name, {})) for image in manifest.images)
    return manifest.model_copy(update={"images": entries})


def test_a_patient_is_held_out_with_all_images_or_not_at_all(two_each: Path) -> None:
    held = hold_out(read_manifest(two_each), two_each, None, 3)
    assert held.names == ["P0_0", "P0_1", "P3_0", "P3_1"]
    assert {image.patient for image in held.learnt_from} == {"P1", "P2", "P4"}
    assert str(held) == (
        "learns from 6 images of 3 patients; held out: 4 images of 2 patients (one of every 3 patients)"
    )


def test_the_split_of_a_prepared_set_is_what_train_holds_out(tmp_path: Path) -> None:
    data = lab(tmp_path, "--validation", 0.34)
    validation = {image.name for image in read_manifest(data).images if image.split == "validation"}
    assert len(validation) == 4
    config = tiny_file(tmp_path / "config.yaml", data, recipe__epochs=1, data__augmentation={})
    ran = seunet("train", config, "-o", tmp_path / "run", "--no-progress")
    assert ran.code == 0, ran.err
    assert "held out: 4 images of 2 patients (the set's own split `validation`)\n" in ran.out
    assert set(read_checkpoint(tmp_path / "run" / "last.safetensors").facts["held_out"]) == validation


def test_a_patient_on_both_sides_is_refused(two_each: Path) -> None:
    text = "leak: P1_1 is held out and P1_0, of the same patient P1, is learnt from; hold out all images of a patient"
    with pytest.raises(InputError, match=re.escape(text)):
        hold_out(read_manifest(two_each), two_each, ["P1_1"], None)
    assert hold_out(read_manifest(two_each), two_each, ["P1_1", "P1_0"], None).names == ["P1_1", "P1_0"]
    leaking = changed(two_each, P2_0={"split": "validation"})
    with pytest.raises(InputError, match="leak: P2_0 is held out and P2_1, of the same patient P2"):
        hold_out(leaking, two_each, None, 5)


def test_the_same_pixels_on_both_sides_are_refused(two_each: Path) -> None:
    pixels = next(image.image for image in read_manifest(two_each).images if image.name == "P0_1")
    text = "leak: P0_1 is held out and P2_0, learnt from, has the same pixels; leave one of them out of the set"
    with pytest.raises(InputError, match=re.escape(text)):
        hold_out(changed(two_each, P2_0={"image": pixels}), two_each, None, 5)


def test_one_patient_alone_cannot_be_held_out(tmp_path: Path) -> None:
    data = lab(tmp_path, patients=1)
    text = "no training images are left beside the 2 held out, as all are of patient P0; hold out fewer by `data.hold"
    with pytest.raises(InputError, match=re.escape(text)):
        hold_out(read_manifest(data), data, None, 5)
    assert str(hold_out(read_manifest(data), data, [], 5)) == "learns from 2 images of 1 patient; none held out"


def test_a_run_that_held_out_other_images_is_not_resumed(two_each: Path, tmp_path: Path) -> None:
    run, config = tmp_path / "run", tiny_config(two_each, data__augmentation={}, recipe__epochs=1)
    train_alone(config, run, 1)
    kept = read_checkpoint(run / "last.safetensors")
    del kept.facts["held_out"]  # as checkpoints were before; every third image was held out, whosever it was
    write_checkpoint(run / "last.safetensors", kept)
    text = (
        f"{run}: the run held out P0_0, P1_1, P3_0, P4_1; by this release's rule (one of every 3 patients) "
        "P0_0, P0_1, P3_0, P3_1 are held out; start another run"
    )
    with pytest.raises(InputError, match=re.escape(text)):
        train_alone(config, run, resume=True)


def test_a_run_from_before_goes_on_where_both_rules_hold_out_the_same(nuclei: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_alone(tiny_config(nuclei), run, 6)
    kept = read_checkpoint(run / "last.safetensors")
    del kept.facts["held_out"]
    write_checkpoint(run / "last.safetensors", kept)
    assert train_alone(tiny_config(nuclei), run, resume=True).finished


def test_where_each_patient_has_one_image_it_is_every_nth_image_by_name_as_before(nuclei: Path) -> None:
    """As in MoNuSeg, whose 30 training images are of 30 patients: runs of before hold out the same."""
    manifest = read_manifest(nuclei)
    names = sorted(image.name for image in manifest.images)
    for every in (2, 3, 5):
        assert hold_out(manifest, nuclei, None, every).names == names[::every]


@pytest.mark.skipif(real_data() is None, reason="needs the real data (support/real_data.py)")
def test_the_training_images_of_monuseg_are_of_thirty_patients() -> None:
    root = real_data()
    assert root is not None
    names = [path.stem for path in (root / "monuseg" / "train" / "images").iterdir()]
    assert len({name[:PATIENT_CHARACTERS] for name in names}) == len(names) == 30
