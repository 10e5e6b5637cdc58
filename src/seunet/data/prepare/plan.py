"""What a reader of a layout hands to `prepare`: settings, files found, jobs, faults met on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from seunet.data.manifest import ClassEntry
from seunet.data.prepare.one_image import IGNORE_CODE, Job
from seunet.errors import InputError, SeunetError, unknown_name
from seunet.images.resolution import check_mpp

STAINS = ("vahadane",)


@dataclass(frozen=True)
class Settings:
    """What a user can choose for any data set."""

    window_px: int = 400
    stride_px: int = 200
    min_annotated: float = 0.0
    validation: float = 0.0
    seed: int = 0
    clip: bool = False
    mpp: float | None = None
    stain: str | None = None

    def __post_init__(self) -> None:
        for name in ("window_px", "stride_px"):
            value = getattr(self, name)
            if not 1 <= value <= 1 << 20:
                raise InputError(f"`{name}` (={value}) must be between 1 and {1 << 20}")
        for name in ("min_annotated", "validation"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise InputError(f"`{name}` (={value:g}) must be at least 0 and below 1")
        if self.mpp is not None:
            check_mpp(self.mpp, "--mpp")
        if self.stain is not None and self.stain not in STAINS:
            raise unknown_name("stain normalisation", self.stain, STAINS)


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


def make_plan(
    dataset: str,
    kind: str,
    classes: list[ClassEntry],
    settings: Settings,
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
    return Plan(dataset, classes, asdict(settings) | (options or {}), decisions, jobs, faults)


def palette_of(classes: Sequence[ClassEntry]) -> list[list[int]]:
    """256 colours: the classes', black for codes without one, white for ignore."""
    colours = [[0, 0, 0] for _ in range(256)]
    for entry in classes:
        colours[entry.code] = list(entry.color)
    colours[IGNORE_CODE] = [255, 255, 255]
    return colours
