"""What was given on the command line → what is shown: results, each with its slide, and slides without results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seunet.errors import InputError
from seunet.results.cohort import result_names
from seunet.segmentation.inputs import SUFFIXES
from seunet.viewer.run_facts import RUN_NAME, RunFacts, read_run

OBJECTS: Final = ("objects.geojson", "objects.geojson.gz")
LABELS: Final = "labels.tif"
HEADS: Final = "heads.tif"
PROBABILITIES: Final = "probabilities.ome.zarr"
WORK: Final = ".work"


@dataclass(frozen=True)
class Shown:
    """One thing to look at."""

    name: str
    slide: Path | None
    """None where it is gone."""
    folder: Path | None = None
    """Of its result."""
    facts: RunFacts | None = None
    notes: tuple[str, ...] = ()
    """What the user should know, a line each."""

    def file(self, *names: str) -> Path | None:
        """The first of these files that the result has."""
        if self.folder is None:
            return None
        return next((path for name in names if (path := self.folder / name).exists()), None)


@dataclass(frozen=True)
class Found:
    shown: tuple[Shown, ...]
    faults: tuple[str, ...]
    """Inputs that cannot be shown, a line each; the others still can."""


def find_shown(inputs: Sequence[str]) -> Found:
    """What the inputs mean; an InputError if there is nothing to show.

    A folder is a result, or holds results (the OUT of `seunet segment`), or holds images.
    """
    folders: list[Path] = []
    slides: list[Path] = []
    faults: list[str] = []
    for text in inputs:
        path = Path(text)
        if path.name == RUN_NAME:
            path = path.parent
        try:
            if path.is_dir():
                results, images = _in_folder(path)
                folders += results
                slides += images
            elif path.exists():
                slides.append(path)
            else:
                raise InputError(f"{text}: no such file or folder; check the path")
        except InputError as error:
            faults.append(str(error))
    shown: list[Shown] = []
    for folder in dict.fromkeys(folders):
        try:
            shown.append(_result(folder, slides))
        except InputError as error:
            faults.append(str(error))
    with_result = {one.slide.resolve() for one in shown if one.slide is not None}
    shown += [Shown(path.name, path) for path in dict.fromkeys(slides) if path.resolve() not in with_result]
    if not shown:
        raise InputError(faults[0] if faults else "nothing to show; give a folder of results, or an image")
    return Found(tuple(shown), tuple(faults))


def _in_folder(path: Path) -> tuple[list[Path], list[Path]]:
    """Result folders and images of a folder; an InputError if there are none."""
    if _is_result(path):
        return [path], []
    inside = sorted(path.iterdir())
    beside = (one for one in inside if one.is_dir() and _is_result(one))
    results = sorted({*beside, *(path / name for name in result_names(path))})
    if results:
        return results, []
    images = [one for one in inside if one.is_file() and one.suffix.lower() in SUFFIXES and one.name[0] != "."]
    if not images:
        raise InputError(f"{path}: no results and no images in this folder; make some: seunet segment SLIDE -o {path}")
    return [], images


def _is_result(folder: Path) -> bool:
    return any((folder / name).exists() for name in (RUN_NAME, WORK, *OBJECTS, LABELS))


def _result(folder: Path, slides: Sequence[Path]) -> Shown:
    if not (folder / RUN_NAME).is_file():
        begun = "it was begun and not finished" if (folder / WORK).exists() else "it is half written"
        raise InputError(f"{folder}: {RUN_NAME} is missing, {begun}; run the same `seunet segment` again, it goes on")
    facts = read_run(folder)
    notes = []
    slide = _slide_of(folder, facts, slides)
    if slide is None:
        notes.append(f"the slide {facts.image.file} is gone: labels and outlines are shown without it")
    elif facts.image.bytes and slide.stat().st_size != facts.image.bytes:
        notes.append(f"{slide.name} has changed since it was analysed: what is shown may not fit")
    missing = [name for name in (OBJECTS[0], LABELS) if not (folder / name).exists()]
    if OBJECTS[0] in missing and (folder / OBJECTS[1]).exists():
        missing.remove(OBJECTS[0])
    if missing:
        notes.append(f"{' and '.join(missing)} of this result {'are' if len(missing) > 1 else 'is'} missing")
    return Shown(folder.name, slide, folder, facts, (*notes, *facts.notes))


def _slide_of(folder: Path, facts: RunFacts, slides: Sequence[Path]) -> Path | None:
    """Where it was when it was analysed, or a file of its name that was given too, or lies beside the results."""
    name = Path(facts.image.file).name
    places = [folder / facts.source] if facts.source else []
    places += [path for path in slides if path.name == name]
    places += [folder / name, folder.parent / name, folder.parent.parent / name]
    return next((path for path in places if path.name == name and path.is_file()), None)
