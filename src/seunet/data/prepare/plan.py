"""What a reader of a layout hands to `prepare`: settings, files found, jobs, faults met on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from seunet.data.manifest import ClassEntry
from seunet.data.prepare.one_image import IGNORE_CODE, Job
from seunet.errors import InputError, SeunetError
from seunet.images.resolution import check_mpp
from seunet.settings import Section

Side = Annotated[int, Field(ge=1, le=1 << 20)]
Share = Annotated[float, Field(ge=0, lt=1)]


class PrepareSettings(Section):
    """What a user can choose for any data set."""

    window_px: Side = 400
    stride_px: Side = 200
    min_annotated: Share = 0.0
    validation: Share = 0.0
    seed: int = 0
    clip: bool = False
    mpp: Annotated[float, AfterValidator(partial(check_mpp, where="--mpp"))] | None = None
    stain: Literal["vahadane", "vahadane-tuned"] | None = None
    """As in `seunet.data.stain.STAIN_METHODS`, whose module is loaded in the workers only."""


class Found(NamedTuple):
    """An image and its annotation, and what their place or name tells."""

    name: str
    image: Path
    annotation: Path
    split: str
    patient: str
    mpp: float | None
    mpp_source: str


class Plan(NamedTuple):
    """Jobs for the workers, faults of the layout, and what the manifest says of the whole."""

    dataset: str
    classes: list[ClassEntry]
    options: dict[str, Any]
    decisions: list[str]
    jobs: list[Job]
    faults: list[SeunetError]
    fit_windows: bool = False
    """Whether smaller windows are chosen where images are smaller than those asked for."""


def make_plan(
    dataset: str,
    kind: str,
    classes: list[ClassEntry],
    settings: PrepareSettings,
    found: Sequence[Found],
    dest: Path,
    *,
    code_map: dict[str, int] | None = None,
    decisions: list[str],
    faults: list[SeunetError],
    options: dict[str, Any] | None = None,
) -> Plan:
    """One job for each image found."""
    palette = palette_of(classes)
    jobs = [
        Job(
            name=item.name,
            split=item.split,
            patient=item.patient,
            image=str(item.image),
            annotation=str(item.annotation),
            kind=kind,
            mpp=item.mpp if settings.mpp is None else settings.mpp,
            mpp_source=item.mpp_source if settings.mpp is None else "user",
            code_map=code_map or {},
            palette=palette,
            classes=len(classes),
            clip=settings.clip,
            window_px=settings.window_px,
            stride_px=settings.stride_px,
            min_annotated=settings.min_annotated,
            stain=settings.stain,
            dest=str(dest),
        )
        for item in sorted(found)
    ]
    return Plan(dataset, classes, settings.model_dump() | (options or {}), decisions, jobs, faults)


def palette_of(classes: Sequence[ClassEntry]) -> list[list[int]]:
    """256 colours: the classes', black for codes without one, white for ignore."""
    colours = [[0, 0, 0] for _ in range(256)]
    for entry in classes:
        colours[entry.code] = list(entry.color)
    colours[IGNORE_CODE] = [255, 255, 255]
    return colours


def draw_patients(patients: Iterable[str], fraction: float, seed: int) -> set[str]:
    """About `fraction` of the patients, at least one of two or more, by the order of their hashes.

    A pure function of names and seed: the order of files and the machine play no part.
    """
    if not 0 <= fraction < 1:
        raise InputError(f"`fraction` (={fraction:g}) must be at least 0 and below 1")
    names = sorted(set(patients), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    wanted = round(fraction * len(names))
    if fraction > 0 and len(names) > 1:
        wanted = min(max(wanted, 1), len(names) - 1)
    return set(names[:wanted])


def move_share(found: Sequence[Found], fraction: float, seed: int, to: str) -> list[Found]:
    """Move the images of a share of the training patients to the split `to`: no patient is ever in two."""
    drawn = draw_patients((item.patient for item in found if item.split == "train"), fraction, seed)
    return [item._replace(split=to) if item.split == "train" and item.patient in drawn else item for item in found]
