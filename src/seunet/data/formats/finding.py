"""What the readers of published layouts share: finding folders, pairing files, saying what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seunet.errors import InputError, SeunetError
from seunet.images.pillow_codec import SUFFIXES


def check_source(source: Path) -> None:
    """`source` must be a folder with something in it."""
    if source.is_file():
        if source.suffix.lower() in (".zip", ".gz", ".tar", ".tgz", ".7z"):
            raise InputError(f"{source}: is an archive; extract it and pass the folder")
        raise InputError(f"{source}: is a file; pass the folder that holds the data set")
    if not source.is_dir():
        raise InputError(f"{source}: no such folder; check the path")
    try:
        names = visible(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror}); check its permissions") from error
    if not names:
        raise InputError(f"{source}: is empty; pass the folder that the archive was extracted to")


def visible(folder: Path) -> list[Path]:
    """The entries of a folder in order, without hidden ones and archive litter."""
    return sorted(entry for entry in folder.iterdir() if entry.name[0] != "." and entry.name != "__MACOSX")


def files_by_stem(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> tuple[dict[str, Path], list[SeunetError]]:
    """Files with these suffixes, by default images, by name without suffix, and a fault for each name found twice."""
    found: dict[str, Path] = {}
    faults: list[SeunetError] = []
    for path in visible(folder):
        if path.suffix.lower() in suffixes and path.is_file():
            if path.stem in found:
                faults.append(InputError(f"{path.name}: {found[path.stem].name} has the same name; remove one"))
            else:
                found[path.stem] = path
    return found, faults


def pair(
    images: dict[str, Path], annotations: dict[str, Path], image_folder: str, annotation_folder: str
) -> tuple[list[str], list[SeunetError]]:
    """Names with both files, in order, and a fault for each file without its counterpart."""
    faults: list[SeunetError] = []
    for name in sorted(images.keys() - annotations.keys()):
        faults.append(InputError(f"{images[name].name}: has no annotation in {annotation_folder}; add it or remove it"))
    for name in sorted(annotations.keys() - images.keys()):
        faults.append(InputError(f"{annotations[name].name}: has no image in {image_folder}; add it or remove it"))
    return sorted(images.keys() & annotations.keys()), faults


def find_folder(source: Path, names: Iterable[str]) -> Path | None:
    """The first of `names` below `source` (case ignored), or its inner folder of the same name."""
    wanted = [name.casefold() for name in names]
    children = {entry.name.casefold(): entry for entry in visible(source) if entry.is_dir()}
    for name in wanted:
        if name in children:
            inner = find_folder(children[name], [name])
            return inner or children[name]
    return None


def wrong_level(source: Path, expected: str, inner: Iterable[str]) -> InputError:
    """The error for a SRC that is not the folder meant, pointing to the right one where it can be seen."""
    inner = list(inner)
    archives = [entry.name for entry in visible(source) if entry.suffix.lower() == ".zip"]
    if archives:
        return InputError(f"{source}: holds {archives[0]} but not {expected}; extract the archive first")
    if find_folder(source.parent, inner) == source or source.name.casefold() in {name.casefold() for name in inner}:
        return InputError(f"{source}: is one level too deep; pass the folder that holds it ({source.parent})")
    for child in visible(source):
        if child.is_dir() and find_folder(child, inner) is not None:
            return InputError(f"{source}: is one level too high; pass {child}")
    return InputError(f"{source}: expected {expected}, found {', '.join(e.name for e in visible(source)[:4])}")
