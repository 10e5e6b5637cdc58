"""What a result folder says about itself: run.json, believed only as far as it makes sense."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seunet.errors import InputError
from seunet.limits import MAX_MANIFEST_BYTES
from seunet.storage.files import read_limited

RUN_NAME: Final = "run.json"
COLORS: Final = ((230, 75, 53), (77, 187, 213), (0, 160, 135), (60, 84, 136), (243, 155, 127), (145, 209, 194))
PEEK_BYTES: Final = 1 << 18
CLASS_TEXT: Final = re.compile(rb'"classification":\{"name":("(?:[^"\\]|\\.){1,400}"),"color":\[(\d+),(\d+),(\d+)\]')

Color = tuple[int, int, int]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LevelFacts(_Part):
    width_px: int = Field(gt=0, le=1 << 30)
    height_px: int = Field(gt=0, le=1 << 30)
    downsample: float = Field(gt=0)


class BoundsFacts(_Part):
    x: int = 0
    y: int = 0


class MppFacts(_Part):
    x: float = Field(gt=0, allow_inf_nan=False)
    y: float = Field(gt=0, allow_inf_nan=False)
    source: str = ""


class ImageFacts(_Part):
    file: str
    bytes: int = 0
    levels: tuple[LevelFacts, ...] = Field(min_length=1)
    bounds: BoundsFacts = BoundsFacts()
    mpp: MppFacts | None = None


class EstimateFacts(_Part):
    mpp: float | None = None
    mpp_low: float | None = None
    mpp_high: float | None = None


class ScaleFacts(_Part):
    source: str = "none"
    stated_mpp: float | None = None
    estimate: EstimateFacts | None = None
    conflict: str | None = None


class Magnification(_Part):
    downsample: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class ClassFacts(_Part):
    name: str
    color: tuple[int, int, int]


class ResultFacts(_Part):
    objects: dict[str, int] = {}
    head_sigmas_px: tuple[tuple[float, float], ...] | None = None
    heads_won: tuple[float | None, ...] = ()
    classes: tuple[ClassFacts, ...] = ()


class RunFacts(_Part):
    """run.json, as much of it as is shown."""

    image: ImageFacts
    magnification: Magnification = Magnification()
    scale: ScaleFacts = ScaleFacts()
    results: ResultFacts = ResultFacts()
    notes: tuple[str, ...] = ()
    source: str | None = None
    """Where the slide was, from the folder of the result."""


def read_run(folder: Path) -> RunFacts:
    """The facts of a result; an InputError in one line if they are not there or make no sense."""
    path = folder / RUN_NAME
    text = read_limited(path, MAX_MANIFEST_BYTES, where=str(path))
    try:
        return RunFacts.model_validate(json.loads(text))
    except (ValueError, ValidationError, RecursionError):
        raise InputError(f"{path}: is not of `seunet segment`; make the result again with --overwrite") from None


def class_colors(facts: RunFacts, objects: Path | None) -> dict[str, Color]:
    """Each class with its colour, in the order of its code: from run.json; of older results from their outlines."""
    if facts.results.classes:
        return {one.name: _bytes(one.color) for one in facts.results.classes}
    seen = {} if objects is None else peek_colors(objects)
    named = list(facts.results.objects) or list(seen)
    return {name: seen.get(name, COLORS[code % len(COLORS)]) for code, name in enumerate(named)}


def peek_colors(objects: Path) -> dict[str, Color]:
    """The classes, with their colours, of the first objects in a GeoJSON file."""
    import gzip

    try:
        with gzip.open(objects) if objects.suffix == ".gz" else objects.open("rb") as file:
            start = file.read(PEEK_BYTES)
    except (OSError, EOFError):
        return {}
    found: dict[str, Color] = {}
    for name, *color in CLASS_TEXT.findall(start):
        try:
            found.setdefault(json.loads(name), _bytes([int(value) for value in color]))
        except ValueError:
            continue
    return found


def _bytes(color: Any) -> Color:
    red, green, blue = (min(max(int(value), 0), 255) for value in color)
    return red, green, blue
