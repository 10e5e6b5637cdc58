"""The command line's inputs (files, folders, patterns, tables) → the images to be done, in order, each with a name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from seunet.errors import InputError
from seunet.images.resolution import check_mpp
from seunet.segmentation.item_names import PICTURES, names_for
from seunet.storage.files import number_in, read_table
from seunet.storage.object_store import Remote, files_at, shown
from seunet.storage.store_cache import copy_path

SLIDES = (".svs", ".ndpi", ".mrxs", ".scn", ".bif", ".vms", ".vmu", ".svslide", ".czi")
SUFFIXES = (*PICTURES, *SLIDES)
"""What is taken from a folder.  A file that is named itself may have any suffix: its content decides."""

NOT_READ = (
    ".gif",
    ".jp2",
    ".j2k",
    ".jpx",
    ".jxl",
    ".heic",
    ".avif",
    ".dcm",
    ".vsi",
    ".lif",
    ".isyntax",
    ".qptiff",
    ".zvi",
)
"""Images that a folder may hold and that are not taken from it, but named."""

RESULT_MARKS = ("run.json", ".work")
"""Where one of these lies, pictures are results."""

NAMED_SKIPPED = 3
TABLES = (".csv", ".tsv")
MICRONS_AT_ONE = 10.0
"""µm per pixel of "1 ×" by the usual convention: 40 × is 0.25."""


class Item(NamedTuple):
    """One image to be done: its results go to a folder `name`."""

    path: Path
    mpp: float | None
    name: str
    remote: Remote | None = None
    """The file in a store that `path` is to be the copy of."""


class Inputs(NamedTuple):
    """What was found.  A fault is one input that cannot be done, in one line; the others still can."""

    items: tuple[Item, ...]
    faults: tuple[InputError, ...]
    warnings: tuple[str, ...]


class _Found(NamedTuple):
    path: Path
    mpp: float | None
    where: str
    base: Path | None = None
    """The folder whose subfolders the result's folder mirrors; None where the file's own name is enough."""
    remote: Remote | None = None


def is_url(text: str) -> bool:
    """Whether it is an address in a store and no path."""
    return "://" in text


def find_inputs(inputs: Sequence[str], recursive: bool = False) -> Inputs:
    """Every image that the inputs mean; an InputError if there is not one.

    A folder stands for the images that lie directly in it, or at any depth if `recursive`; a pattern
    (`slides/**/*.svs`) for what it matches, a CSV file for its rows: columns `path` (relative to the table) and `mpp`
    (may be empty).  What lies in a folder of results is no input of a folder or pattern.
    """
    found: list[_Found] = []
    faults: list[InputError] = []
    warnings: list[str] = []
    for text in inputs:
        try:
            for one in _expand(text, recursive, warnings):
                if isinstance(one, InputError):
                    faults.append(one)
                else:
                    found.append(one)
        except InputError as error:
            faults.append(error)
    items, collisions = _named(found, warnings)
    faults += collisions
    if not items:
        if not faults:
            raise InputError("no inputs; give images, folders, patterns or a CSV with the columns path,mpp")
        more = f" (and {len(faults) - 1} more inputs that cannot be used)" if len(faults) > 1 else ""
        raise InputError(f"{faults[0]}{more}")
    return Inputs(tuple(items), tuple(faults), tuple(warnings))


def _expand(text: str, recursive: bool, warnings: list[str]) -> Iterator[_Found | InputError]:
    text = text if is_url(text) else os.path.expanduser(text)
    path = Path(text)
    if is_url(text):
        yield from _in_store(text, recursive, warnings)
    elif path.is_dir():
        files = sorted(_files_below(path) if recursive else path.iterdir())
        images = [file for file in files if _is_image(file)]
        _name_skipped(text, files, warnings)
        if not images:
            hint = "" if recursive else "; --recursive searches its subfolders"
            raise InputError(f"{text}: no images in this folder{hint}")
        yield from (_Found(file, None, str(file), path if recursive else None) for file in images)
    elif path.suffix.lower() in TABLES and path.is_file():
        yield from _rows(path, warnings)
    elif path.exists():
        yield _Found(path, None, text)
    elif glob.has_magic(text):
        files = sorted(Path(name) for name in glob.glob(text, recursive=True))
        images = [file for file in files if _is_image(file)]
        _name_skipped(text, files, warnings)
        if not images:
            raise InputError(f"{text}: matches no image; check the pattern")
        yield from (_Found(file, None, str(file)) for file in images)
    else:
        raise InputError(f"{text}: no such file or folder; check the path")


def _in_store(url: str, recursive: bool, warnings: list[str]) -> Iterator[_Found]:
    """The file of that address, or the images of a folder or pattern; results are no images."""
    files = {copy_path(file.url): file for file in files_at(url, recursive)}
    asked = copy_path(url)
    if asked in files:  # a file that is named itself may have any suffix
        yield _Found(asked, None, shown(url), None, files[asked])
        return
    _name_skipped(shown(url), list(files), warnings)
    results = {path.parent for path in files if path.name in RESULT_MARKS}
    images = [path for path in files if path.suffix.lower() in SUFFIXES and path.parent not in results]
    images = [path for path in images if not path.name.startswith(".")]
    if not images:
        raise InputError(f"{shown(url)}: no images there{'' if recursive else '; --recursive searches its subfolders'}")
    yield from (
        _Found(path, None, shown(files[path].url), asked if recursive else None, files[path]) for path in images
    )


def _files_below(folder: Path) -> Iterator[Path]:
    """All files at any depth, but in hidden folders; links to folders are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place) / name for name in files)


def _name_skipped(where: str, files: Sequence[Path], warnings: list[str]) -> None:
    """Say which images are not taken: a file that is left out in silence is a patient who is missing."""
    skipped = [file.name for file in files if file.suffix.lower() in NOT_READ and not file.name.startswith(".")]
    if skipped:
        more = f" and {len(skipped) - NAMED_SKIPPED} more" if len(skipped) > NAMED_SKIPPED else ""
        named = ", ".join(skipped[:NAMED_SKIPPED])
        warnings.append(f"{where}: skipped {named}{more}; convert to TIFF")


def _is_image(path: Path) -> bool:
    """By its suffix; hidden files are nobody's images (macOS leaves `._slide.tif` beside `slide.tif`)."""
    if path.suffix.lower() not in SUFFIXES or path.name.startswith(".") or not path.is_file():
        return False
    return not any((path.parent / mark).exists() for mark in RESULT_MARKS)


def _rows(table: Path, warnings: list[str]) -> Iterator[_Found | InputError]:
    rows = read_table(table, ("path",), ("mpp", "magnification"))
    if rows and "magnification" in rows[0]:
        warnings.append(f"{table.name}: magnification is read as 10 / magnification µm per pixel; better give mpp")
    for number, row in enumerate(rows, start=2):
        where = f"{table.name} row {number}"
        path = table.parent / row["path"]
        try:
            if is_url(row["path"]):
                mpp = _row_mpp(row, where)
                yield from (found._replace(mpp=mpp) for found in _in_store(row["path"], False, warnings))
                continue
            if not row["path"] or not path.is_file():
                raise InputError(f"{where}: no such file {row['path'][:200]!r}; paths are relative to the table")
            yield _Found(path, _row_mpp(row, where), where)
        except InputError as error:
            yield error


def _row_mpp(row: dict[str, str], where: str) -> float | None:
    text, magnification = row.get("mpp", ""), row.get("magnification", "")
    if text:
        return check_mpp(number_in(text, f"{where}: mpp"), f"{where} mpp", "correct the table or leave the cell empty")
    if not magnification:
        return None
    power = number_in(magnification.rstrip("xX×"), f"{where}: magnification")
    mpp = MICRONS_AT_ONE / power if power > 0 else float("nan")
    return check_mpp(mpp, f"{where} magnification {magnification[:20]}", "correct the table or leave the cell empty")


def _named(found: Sequence[_Found], warnings: list[str]) -> tuple[list[Item], list[InputError]]:
    """Items with names of their own; of two files with one name, and of two mpp for one file, the first is done."""
    items: list[Item] = []
    faults: list[InputError] = []
    taken: dict[str, _Found] = {}
    for one, name in zip(found, names_for([(one.path, one.base) for one in found]), strict=True):
        first = taken.setdefault(name.casefold(), one)
        if first is one:
            items.append(Item(one.path, one.mpp, name, one.remote))
        elif first.path.resolve() != one.path.resolve():
            faults.append(
                InputError(f"{one.where}: its results would go to {name}/ like those of {first.where}; rename one file")
            )
        elif first.mpp != one.mpp:
            faults.append(InputError(f"{one.where}: given twice with another mpp; remove one of the two"))
        else:
            warnings.append(f"{one.where}: given twice; done once")
    return items, faults
