"""SRC and DEST that are not what was meant: one line, the right exit code, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from seunet.data.manifest import read_manifest
from support.cli import seunet
from support.datasets import (
    class_map,
    he_pixels,
    tree_bytes,
    write_bcss,
    write_csv,
    write_image,
    write_lab,
    write_monuseg,
)


def refused(*arguments: object, code: int = 2) -> str:
    ran = seunet("data", "prepare", *arguments, "--no-progress")
    assert ran.code == code, ran
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    return ran.err.removeprefix("seunet: ").rstrip("\n")


def test_the_wrong_folder_level_is_named_with_the_right_one(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "a" / "src")
    inner = source / "MoNuSeg 2018 Training Data"
    dest = tmp_path / "dest"
    assert (
        refused("monuseg", inner, dest) == f"{inner}: is one level too deep; pass the folder that holds it ({source})"
    )
    assert refused("monuseg", tmp_path / "a", dest) == f"{tmp_path / 'a'}: is one level too high; pass {source}"
    lab = write_lab(tmp_path / "b" / "lab")
    assert (
        refused("folder", lab / "images", dest, "--kind", "instances")
        == f"{lab / 'images'}: is one level too deep; pass the folder that holds it ({lab})"
    )
    assert refused("folder", lab.parent, dest, "--kind", "instances").endswith(f"is one level too high; pass {lab}")


def test_a_folder_of_another_kind_is_told_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "src" / "holiday").mkdir(parents=True)
    source = tmp_path / "src"
    assert refused("monuseg", source, tmp_path / "d") == (
        f"{source}: expected the folders “MoNuSeg 2018 Training Data” and “MoNuSegTestData”, found holiday"
    )
    assert "expected the folders “rgbs_colorNormalized” (or “rgb”) and “masks”" in refused(
        "bcss", source, tmp_path / "d"
    )
    assert "expected the folders “images” and “masks”" in refused(
        "folder", source, tmp_path / "d", "--kind", "instances"
    )


def test_an_archive_is_not_a_folder(tmp_path: Path) -> None:
    archive = tmp_path / "MoNuSegTestData.zip"
    archive.write_bytes(b"PK\x03\x04")
    assert refused("monuseg", archive, tmp_path / "d") == (f"{archive}: is an archive; extract it and pass the folder")
    (tmp_path / "downloads").mkdir()
    shutil.move(archive, tmp_path / "downloads" / archive.name)
    assert refused("monuseg", tmp_path / "downloads", tmp_path / "d").endswith(
        "holds MoNuSegTestData.zip but not the folders “MoNuSeg 2018 Training Data” and “MoNuSegTestData”; "
        "extract the archive first"
    )


def test_a_file_nothing_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    dest = tmp_path / "d"
    assert refused("bcss", tmp_path / "a.txt", dest).endswith("is a file; pass the folder that holds the data set")
    assert refused("bcss", tmp_path / "none", dest).endswith("none: no such folder; check the path")
    assert refused("bcss", tmp_path / "empty", dest).endswith(
        "empty: is empty; pass the folder that the archive was extracted to"
    )


def test_folders_without_a_single_pair_are_refused(tmp_path: Path) -> None:
    (tmp_path / "src" / "images").mkdir(parents=True)
    (tmp_path / "src" / "masks").mkdir()
    assert (
        refused("folder", tmp_path / "src", tmp_path / "d", "--kind", "instances")
        == "no image with its annotation was found for folder; check SRC"
    )
    write_image(tmp_path / "src" / "images" / "a.png", he_pixels(8, 0))
    assert (
        refused("folder", tmp_path / "src", tmp_path / "d", "--kind", "instances")
        == "a.png: has no annotation in masks; add it or remove it"
    )


def test_an_xml_without_its_image_and_the_reverse_are_named(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=2, test=0)
    folder = source / "MoNuSeg 2018 Training Data"
    (folder / "Tissue Images" / "TCGA-00-1000-01Z-00-DX1.tif").unlink()
    (folder / "Annotations" / "TCGA-01-1001-01Z-00-DX1.xml").unlink()
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "d")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "seunet: TCGA-00-1000-01Z-00-DX1.xml: has no image in Tissue Images; add it or remove it",
        "seunet: TCGA-01-1001-01Z-00-DX1.tif: has no annotation in Annotations; add it or remove it",
    ]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    source = write_lab(tmp_path / "src", patients=1, images_each=1)
    write_image(source / "images" / "P0_0.tif", he_pixels(48, 0))
    ran = seunet("data", "prepare", "folder", source, tmp_path / "d", "--kind", "instances", "--no-progress")
    assert ran.code == 2
    assert "seunet: P0_0.tif: P0_0.png has the same name; remove one\n" in ran.err


def test_one_image_in_both_archives_is_refused(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    training = source / "MoNuSeg 2018 Training Data"
    testing = source / "MoNuSegTestData"
    testing.mkdir()
    for file in [*training.rglob("*.tif"), *training.rglob("*.xml")]:
        shutil.copy(file, testing)
    assert "TCGA-00-1000-01Z-00-DX1: two images have this name (" in refused("monuseg", source, tmp_path / "d")


def test_a_dest_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    dest = tmp_path / "dest"
    (dest / "images").mkdir(parents=True)
    (dest / "images" / "holiday.png").write_bytes(b"precious")
    before = tree_bytes(dest)
    assert refused("monuseg", source, dest) == (
        f"{dest}: holds something else (images); pass --overwrite or choose an empty DEST"
    )
    assert tree_bytes(dest) == before
    assert seunet("data", "prepare", "monuseg", source, dest, "--overwrite").code == 0
    assert (dest / "images" / "holiday.png").read_bytes() == b"precious"


def test_a_set_with_other_options_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=2, test=0)
    dest = tmp_path / "dest"
    assert seunet("data", "prepare", "monuseg", source, dest).code == 0
    before = tree_bytes(dest)
    assert refused("monuseg", source, dest, "--window", 32) == (
        f"{dest}: holds a set prepared from other files or options; pass --overwrite or another DEST"
    )
    assert tree_bytes(dest) == before
    next(source.rglob("TCGA-01*.tif")).unlink()
    next(source.rglob("TCGA-01*.xml")).unlink()
    assert seunet("data", "prepare", "monuseg", source, dest, "--overwrite", "--window", 32).code == 0
    assert len(read_manifest(dest).images) == 1
    assert sorted(path.name for path in (dest / "images").iterdir()) == ["TCGA-00-1000-01Z-00-DX1.png"]


def test_an_unfinished_run_with_other_options_is_not_taken_over(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=2, test=0)
    dest = tmp_path / "dest"
    (next(source.rglob("TCGA-01*.xml"))).write_text("<Annotations>")
    assert seunet("data", "prepare", "monuseg", source, dest).code == 2
    assert (dest / ".work" / "TCGA-00-1000-01Z-00-DX1.json").is_file()
    assert refused("monuseg", source, dest, "--window", 32) == (
        f"{dest}: holds an unfinished run with other options (1 images, noted in the hidden folder .work); "
        "pass --overwrite or choose an empty DEST"
    )
    assert seunet("data", "prepare", "monuseg", source, dest, "--window", 32, "--overwrite", "--skip-errors").code == 5


def test_after_a_corrected_class_map_a_run_that_finished_no_image_goes_on(tmp_path: Path) -> None:
    source, codes = write_lab(tmp_path / "lab", patients=1, images_each=1), tmp_path / "classes.csv"
    write_csv(codes, [("code", "class"), (0, "other"), (1, "tumour")])
    options = ("--class-map", codes, "--window", 24, "--workers", 1)
    assert "codes 2 (" in refused("folder", source, tmp_path / "dest", *options)
    class_map(codes)
    ran = seunet("data", "prepare", "folder", source, tmp_path / "dest", *options, "--no-progress")
    assert (ran.code, ran.err) == (0, "")


def test_overwrite_never_deletes_beyond_the_set(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    dest = tmp_path / "dest"
    assert seunet("data", "prepare", "monuseg", source, dest).code == 0
    precious = tmp_path / "precious.png"
    precious.write_bytes(b"x")
    manifest = dest / "manifest.json"
    manifest.write_text(manifest.read_text().replace("images/TCGA-00-1000-01Z-00-DX1.png", "../precious.png"))
    assert refused("monuseg", source, dest, "--overwrite").endswith(
        "lists ../precious.png, which lies outside the set; delete the manifest by hand"
    )
    assert precious.exists()


@pytest.mark.parametrize("place", ["src", "src/inner", "."])
def test_src_and_dest_must_lie_apart(tmp_path: Path, place: str) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    before = tree_bytes(source)
    assert "lie in each other; choose a DEST apart from SRC" in refused(
        "monuseg", source, tmp_path / place, "--overwrite"
    )
    assert tree_bytes(source) == before


def test_a_dest_that_is_a_file_is_refused(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    (tmp_path / "d").write_text("x")
    assert refused("monuseg", source, tmp_path / "d") == f"{tmp_path / 'd'}: is a file; choose a folder for DEST"


def as_anyone(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `seunet data prepare ARGUMENTS` as a user who is not root."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and len(path.parts) > 2:
            path.chmod(path.stat().st_mode | 0o055)
    drop = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    command = [sys.executable, "-m", "seunet.cli.main", "data", "prepare", *map(str, arguments), "--no-progress"]
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([*drop, *command], capture_output=True, text=True, env=environment)


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may do anything")
def test_a_folder_without_permission_is_named_with_the_right_exit_code(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    locked, hidden = tmp_path / "locked", tmp_path / "hidden"
    for folder, mode in ((locked, 0o555), (hidden, 0o000)):
        folder.mkdir()
        folder.chmod(mode)
    ran = as_anyone(tmp_path, "monuseg", source, locked / "d")
    assert ran.returncode == 3, ran.stderr
    assert "cannot be written (Permission denied); free space or choose another place" in ran.stderr
    ran = as_anyone(tmp_path, "monuseg", source, hidden)
    assert ran.returncode == 3, ran.stderr
    assert ran.stderr == f"seunet: {hidden}: cannot be read (Permission denied); check its permissions\n"
    ran = as_anyone(tmp_path, "monuseg", hidden, tmp_path / "d")
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr == f"seunet: {hidden}: cannot be read (Permission denied); check its permissions\n"
    dest = tmp_path / "old"
    assert seunet("data", "prepare", "monuseg", source, dest).code == 0
    ran = as_anyone(tmp_path, "monuseg", source, dest, "--overwrite", "--window", "32")
    assert ran.returncode == 3, ran.stderr
    assert ran.stderr == f"seunet: {dest}: cannot be overwritten (Permission denied); check its permissions\n"


def test_a_disk_that_takes_no_more_is_a_storage_error_and_nothing_half_written_stays(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0, size_px=128)
    dest = tmp_path / "d"
    command = ["prlimit", "--fsize=4000", sys.executable, "-m", "seunet.cli.main", "data", "prepare", "monuseg"]
    ran = subprocess.run([*command, str(source), str(dest)], capture_output=True, text=True)
    assert ran.returncode == 3, ran.stderr
    assert "cannot be written (File too large); free space or choose another place" in ran.stderr
    assert [path.name for path in dest.rglob("*") if path.is_file()] == ["claim"]
    assert seunet("data", "prepare", "monuseg", source, dest).code == 0


def read_terminal(terminal: int) -> str:
    """All that is written to it, while it is written: a terminal holds 4 kB, which a slow run fills with bars."""
    shown = bytearray()
    with suppress(OSError):  # what Linux answers when the last writer has gone
        while chunk := os.read(terminal, 1 << 16):
            shown += chunk
    os.close(terminal)
    return shown.decode()


def test_a_terminal_gets_a_bar_and_a_log_gets_lines(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=2, test=0)
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "seunet.cli.main", "data", "prepare", "monuseg", str(source), str(tmp_path / "d")]
    with subprocess.Popen(command, stderr=end, stdout=subprocess.DEVNULL) as running:
        os.close(end)
        shown = read_terminal(terminal)
    assert running.returncode == 0
    assert "2/2" in shown
    assert "\x1b[" in shown
    assert "[2/2]" not in shown


def test_a_foreign_manifest_is_named_with_the_field(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    ran = seunet("data", "verify", tmp_path)
    assert ran.code == 2
    assert f"{tmp_path}/manifest.json: `format` (='other'): Input should be 'seunet-data/1'; prepare" in ran.err
    (tmp_path / "manifest.json").write_text("[")
    assert "manifest.json: Invalid JSON" in seunet("data", "verify", tmp_path).err


def test_verify_of_no_set_says_so(tmp_path: Path) -> None:
    assert "none: no such folder; make it with `seunet data prepare`" in seunet("data", "verify", tmp_path / "none").err
    ran = seunet("data", "verify", tmp_path)
    assert ran.code == 2
    assert "holds no manifest.json; pass the DEST of a finished `seunet data prepare`" in ran.err


@pytest.mark.parametrize("verb", [("prepare", "monuseg"), ("prepare", "bcss"), ("prepare", "folder"), ("verify",)])
def test_help_of_every_verb_has_an_example(verb: tuple[str, ...]) -> None:
    ran = seunet("data", *verb, "--help")
    assert ran.code == 0
    assert f"Example: seunet data {' '.join(verb)} " in " ".join(ran.out.split())


def test_bcss_and_folder_sources_are_found_whole(tmp_path: Path) -> None:
    bcss = write_bcss(tmp_path / "bcss")
    assert seunet("data", "prepare", "bcss", bcss, tmp_path / "a").code == 0
    lab = write_lab(tmp_path / "lab")
    options = ("--class-map", class_map(tmp_path / "map.csv"))
    assert seunet("data", "prepare", "folder", lab, tmp_path / "b", *options).code == 0
    assert seunet("data", "verify", tmp_path / "a").code == 0
    assert seunet("data", "verify", tmp_path / "b").code == 0
