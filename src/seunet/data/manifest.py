"""The prepared form: `manifest.json` and the files it lists.

DEST/manifest.json      everything below, with hashes, windows and decisions
DEST/images/NAME.png    8-bit RGB
DEST/masks/NAME.png     8-bit class codes with a palette: opens in colour, reads as codes; 255 is ignore
DEST/instances/NAME.png 16-bit instance numbers, where the source has instances
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from seunet.data.prepare.one_image import IGNORE_CODE
from seunet.errors import InputError
from seunet.limits import MAX_MANIFEST_BYTES
from seunet.maths.windows import MAX_PADDED, fitting_size_px, padded_share, window_grid
from seunet.settings import Section, first_fault
from seunet.storage.atomic import write_text
from seunet.storage.files import canonical_json, read_limited

FORMAT = "seunet-data/1"
MANIFEST = "manifest.json"
SPLITS = ("train", "validation", "test")
Split = Literal["train", "validation", "test"]


class ClassEntry(Section):
    """A class: its code in the masks, its name, its colour in the palette."""

    code: int = Field(ge=0, lt=IGNORE_CODE)
    name: str
    color: tuple[int, int, int]


class FileEntry(Section):
    """A written file; `pixel_sha256` is that of its pixels whatever the format."""

    path: str
    sha256: str
    pixel_sha256: str


class SourceEntry(Section):
    """A file that was read."""

    file: str
    sha256: str


class ImageEntry(Section):
    """One image with all that is known of it."""

    name: str
    split: Split
    patient: str
    mpp: float | None
    mpp_source: str
    width_px: int = Field(gt=0)
    height_px: int = Field(gt=0)
    image: FileEntry
    mask: FileEntry
    instances: FileEntry | None
    source: dict[str, SourceEntry]
    class_pixels: dict[str, int]
    counts: dict[str, int]
    decisions: tuple[str, ...]
    windows_left_out: int


class WindowTable(Section):
    """Windows of size_px² at (x, y) of the image with that index; no pixels are copied."""

    size_px: int = Field(gt=0)
    stride_px: int = Field(gt=0)
    min_annotated: float
    columns: tuple[str, ...] = ("image", "x", "y")
    rows: tuple[tuple[int, int, int], ...]


class Manifest(Section):
    """A prepared data set."""

    format: Literal["seunet-data/1"]
    dataset: str
    fingerprint: str
    classes: tuple[ClassEntry, ...]
    ignore_code: int
    options: dict[str, Any]
    decisions: tuple[str, ...]
    images: tuple[ImageEntry, ...]
    windows: WindowTable

    def files(self) -> set[str]:
        """The paths of all files of the set."""
        return {file.path for image in self.images for file in (image.image, image.mask, image.instances) if file}

    def window_counts(self) -> dict[str, int]:
        """Windows by split."""
        counts: Counter[str] = Counter(self.images[row[0]].split for row in self.windows.rows)
        return {split: counts[split] for split in SPLITS if counts[split]}

    def content_hash(self) -> str:
        """Of everything the set holds: sources, options, pixels, windows."""
        return fingerprint(self.model_dump(mode="json"))

    def class_areas(self) -> dict[str, dict[str, int]]:
        """Pixels by split and class name; "ignore" last."""
        names = {str(entry.code): entry.name for entry in self.classes} | {str(self.ignore_code): "ignore"}
        areas: dict[str, dict[str, int]] = {}
        for image in self.images:
            total = areas.setdefault(image.split, dict.fromkeys(names.values(), 0))
            for code, pixels in image.class_pixels.items():
                total[names[code]] += pixels
        return areas


def padding_note(manifest: Manifest) -> str | None:
    """A line for people where much of the windows lies beyond the images."""
    windows, sizes = manifest.windows, [(image.height_px, image.width_px) for image in manifest.images]
    share = padded_share(sizes, windows.size_px, windows.stride_px)
    if share <= MAX_PADDED:
        return None
    better = fitting_size_px(sizes, windows.size_px)
    smallest = min(manifest.images, key=lambda image: image.height_px * image.width_px)
    return (
        f"note: {100 * share:.0f} % of the windows of {windows.size_px} px is padding (the smallest image has "
        f"{smallest.width_px}×{smallest.height_px}): prepare the set with --window {better}"
    )


def retiled(manifest: Manifest, size_px: int, stride_px: int, every: int = 1) -> Manifest:
    """The same images cut into other windows, of each image the first and then every n-th of them.

    No window is left out for being little annotated.
    """
    if size_px < 1 or stride_px < 1 or every < 1:
        raise InputError(f"windows of {size_px} px every {stride_px} px, each {every}th: all must be 1 or more")
    rows = tuple(
        (number, x, y)
        for number, image in enumerate(manifest.images)
        for x, y in window_grid(image.height_px, image.width_px, size_px, stride_px)[::every]
    )
    windows = WindowTable(size_px=size_px, stride_px=stride_px, min_annotated=0, rows=rows)
    return manifest.model_copy(update={"windows": windows})


def fingerprint(value: object) -> str:
    """A hash of options or sources."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it atomically: an image to a line, so that two sets can be compared with `diff`."""
    body = manifest.model_dump(mode="json")
    images = ",\n".join(canonical_json(image) for image in body.pop("images"))
    windows = body.pop("windows")
    rows = ",".join(canonical_json(row) for row in windows.pop("rows"))
    head = ",\n".join(f"{json.dumps(key)}:{canonical_json(body[key])}" for key in sorted(body))
    table = canonical_json(windows)[:-1] + f',"rows":[{rows}]}}'
    write_text(folder / MANIFEST, f'{{{head},\n"images":[\n{images}\n],\n"windows":{table}\n}}\n')


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared set, or the one line that says why it is none."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; make it with `seunet data prepare`")
    if not path.is_file():
        raise InputError(f"{folder}: holds no {MANIFEST}; pass the DEST of a finished `seunet data prepare`")
    try:
        return Manifest.model_validate_json(read_limited(path, MAX_MANIFEST_BYTES))
    except ValidationError as error:
        raise InputError(f"{path}: {first_fault(error)}; prepare the set again") from error


def summary_lines(manifest: Manifest) -> list[str]:
    """What a person wants to know of a set: images, patients, windows, areas by class, counts and decisions."""
    windows = manifest.window_counts()
    lines = []
    for split in SPLITS:
        images = [image for image in manifest.images if image.split == split]
        if images:
            patients = len({image.patient for image in images})
            left_out = sum(image.windows_left_out for image in images)
            rest = f" ({left_out} left out)" if left_out else ""
            lines.append(
                f"{split}: {len(images)} images of {patients} patients, {windows.get(split, 0)} windows of "
                f"{manifest.windows.size_px} px{rest}"
            )
    for split, areas in manifest.class_areas().items():
        total = sum(areas.values())
        shares = ", ".join(f"{name} {100 * area / total:.2f} %" for name, area in areas.items() if area)
        lines.append(f"{split} area: {shares}")
    counts: Counter[str] = Counter()
    for image in manifest.images:
        counts.update({name: n for name, n in image.counts.items() if not name.startswith("source_code_")})
    if counts:
        lines.append(", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count))
    note = padding_note(manifest)
    return lines + [f"decision: {sentence}" for sentence in manifest.decisions] + ([note] if note else [])
