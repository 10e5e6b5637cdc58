"""Decide whether DEST may be written: it is empty, ours and unfinished, or --overwrite was given."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from seunet.data.manifest import MANIFEST, Manifest, read_manifest
from seunet.data.pixel_cache import FOLDER as PIXELS
from seunet.data.prepare.one_image import Job
from seunet.errors import InputError
from seunet.images.pillow_codec import read_image
from seunet.storage.atomic import write_text
from seunet.storage.files import canonical_json, sha256
from seunet.storage.output_folder import names_in, overwriting, something_else, sweep

WORK = ".work"
FOLDERS = ("images", "masks", "instances")
KINDS = ("image", "mask", "instances")


def check_places(source: Path, dest: Path) -> None:
    """SRC and DEST must not lie in each other: sources are never written to."""
    inner, outer = source.resolve(), dest.resolve()
    if inner == outer or outer in inner.parents or inner in outer.parents:
        raise InputError(f"{dest}: DEST and SRC ({source}) lie in each other; choose a DEST apart from SRC")


def claim(dest: Path, options: str, whole: str, overwrite: bool) -> Manifest | None:
    """Make `dest` ours; the manifest if it is this very set already.

    `options` is the fingerprint of what was asked for: an unfinished run goes on if it is the same, even if a
    source file was corrected meanwhile.  `whole` covers the sources too: a finished set is this one if equal.
    """
    entries = names_in(dest, "DEST")
    mark = dest / WORK / "claim"
    if mark.is_file() and mark.read_text() == options and MANIFEST not in entries:
        return None
    if MANIFEST in entries and not overwrite:
        manifest = read_manifest(dest)
        if manifest.fingerprint == whole:
            finish(dest, manifest)
            return manifest
        raise InputError(f"{dest}: holds a set prepared from other files or options; pass --overwrite or another DEST")
    # A run killed while it wrote its claim leaves a .work without one: nobody's.  So is one that finished no image.
    begun = mark.is_file()
    finished = len(list((dest / WORK).glob("*.json"))) if begun else 0
    foreign = sorted(set(entries) - {WORK, *(FOLDERS if begun else ())})
    remedy = "pass --overwrite or choose an empty DEST"
    if finished and not overwrite:
        raise InputError(
            f"{dest}: holds an unfinished run with other options ({finished} images, noted in the hidden folder "
            f"{WORK}); {remedy}"
        )
    if foreign and not overwrite:
        raise something_else(dest, foreign[0], remedy)
    _clear(dest)
    write_text(mark, options)
    return None


def note_finished(dest: Path, job: Job, mark: str, record: dict[str, Any]) -> None:
    """Remember that an image is done."""
    write_text(dest / WORK / f"{job['name']}.json", canonical_json({"mark": mark, "record": record}))


def finished_before(dest: Path, job: Job, mark: str) -> dict[str, Any] | None:
    """The record of an image that was finished before the same way, if its files are still what it says."""
    entry = _entry(dest / WORK / f"{job['name']}.json")
    if entry is None or entry["mark"] != mark:
        return None
    record: dict[str, Any] = entry["record"]
    for kind in KINDS:
        if record[kind] is not None:
            file = dest / record[kind]["path"]
            if not file.is_file() or sha256(read_image(file)) != record[kind]["sha256"]:
                return None
    return record


def finish(dest: Path, manifest: Manifest) -> None:
    """The manifest is written: forget records, files no longer in the set, and halves left by kills."""
    for path in sorted(_recorded(dest) - manifest.files()):
        _inside(dest, path).unlink(missing_ok=True)
    sweep_set(dest)
    shutil.rmtree(dest / WORK, ignore_errors=True)


def sweep_set(dest: Path) -> None:
    """Remove files half written by workers that were ended."""
    sweep(dest, *(dest / folder for folder in FOLDERS))


def _clear(dest: Path) -> None:
    """Remove what an earlier run wrote, and nothing else: other people's files stay."""
    paths = _recorded(dest)
    with suppress(InputError):
        paths |= read_manifest(dest).files()
    with overwriting(dest):
        for path in sorted(paths):
            _inside(dest, path).unlink(missing_ok=True)
        (dest / MANIFEST).unlink(missing_ok=True)
        for folder in (WORK, PIXELS):
            if (dest / folder).is_dir():
                shutil.rmtree(dest / folder)


def _recorded(dest: Path) -> set[str]:
    """The files that an unfinished run has written."""
    paths: set[str] = set()
    for path in sorted((dest / WORK).glob("*.json")):
        entry = _entry(path)
        if entry is not None:
            paths |= {entry["record"][kind]["path"] for kind in KINDS if entry["record"][kind] is not None}
    return paths


def _entry(path: Path) -> dict[str, Any] | None:
    """A record of ours, or None: one that was meddled with counts as not there."""
    try:
        entry: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return entry if {"mark", "record"} == entry.keys() and set(KINDS) <= entry["record"].keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _inside(dest: Path, path: str) -> Path:
    """A listed path, which must lie in the folder that lists it."""
    file = (dest / path).resolve()
    if dest.resolve() not in file.parents:
        raise InputError(f"{dest / MANIFEST}: lists {path}, which lies outside the set; delete the manifest by hand")
    return file
