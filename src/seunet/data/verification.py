"""Everything that can be wrong with a prepared set, found in one run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.data.manifest import FileEntry, ImageEntry, Manifest, read_manifest
from seunet.data.prepare.claim import FOLDERS, WORK
from seunet.errors import InputError
from seunet.images import pillow_codec as raster
from seunet.limits import MPP_RANGE
from seunet.progress import Progress, silent
from seunet.storage.files import sha256


class Finding(NamedTuple):
    """A line for the user; a note does not make the set unfit."""

    where: str
    what: str
    note: bool = False

    def __str__(self) -> str:
        return f"{'note: ' if self.note else ''}{self.where}: {self.what}"


def verify(folder: Path, progress: Progress = silent) -> list[Finding]:
    """Every finding, in the order of the manifest; none for a clean set."""
    manifest = read_manifest(folder)
    findings = [*_table_findings(manifest), *_patient_leaks(manifest)]
    twins: dict[str, list[ImageEntry]] = defaultdict(list)
    for number, entry in enumerate(manifest.images, start=1):
        findings += _mpp_findings(entry)
        findings += _image_findings(folder, manifest, entry, twins)
        progress(number, len(manifest.images), entry.name)
    return [*findings, *_pixel_leaks(twins), *_strays(folder, manifest)]


def _image_findings(
    folder: Path, manifest: Manifest, entry: ImageEntry, twins: dict[str, list[ImageEntry]]
) -> Iterator[Finding]:
    """The files of one image: there, unaltered, of one size, with known codes that agree with one another."""
    pixels: dict[str, NDArray[Any]] = {}
    for kind, file in (("image", entry.image), ("mask", entry.mask), ("instances", entry.instances)):
        if file is None:
            continue
        try:
            data, array = _read(folder, file, colour=kind == "image")
        except InputError as error:
            named = str(error).removeprefix(f"{Path(file.path).name}: ")
            yield Finding(file.path, named.removeprefix(f"{file.path}: "))
            continue
        if sha256(data) != file.sha256:
            yield Finding(file.path, "altered since it was prepared (sha256 differs); prepare the set again")
        elif raster.pixel_sha256(array) != file.pixel_sha256:
            yield Finding(file.path, "pixels differ from the manifest's pixel_sha256; prepare the set again")
        if array.shape[:2] != (entry.height_px, entry.width_px):
            size = f"{array.shape[1]}×{array.shape[0]}"
            yield Finding(file.path, f"is {size}, the manifest says {entry.width_px}×{entry.height_px}")
        pixels[kind] = array
    if "image" in pixels:
        twins[raster.pixel_sha256(pixels["image"])].append(entry)
    if "mask" in pixels:
        yield from _mask_findings(manifest, entry, pixels["mask"])
    if "mask" in pixels and "instances" in pixels and pixels["mask"].shape == pixels["instances"].shape:
        yield from _instance_findings(entry, pixels["mask"], pixels["instances"])


def _read(folder: Path, file: FileEntry, *, colour: bool) -> tuple[bytes, NDArray[Any]]:
    path = (folder / file.path).resolve()
    if folder.resolve() not in path.parents:
        raise InputError(f"{file.path}: lies outside the set; correct the manifest")
    if not path.is_file():
        raise InputError(f"{file.path}: is missing; prepare the set again")
    data = raster.read_image(path)
    decode = raster.decode_rgb if colour else raster.decode_codes
    return data, decode(data, file.path).pixels


def _mask_findings(manifest: Manifest, entry: ImageEntry, mask: NDArray[Any]) -> Iterator[Finding]:
    path = entry.mask.path
    codes, counts = np.unique(mask, return_counts=True)
    areas = {int(code): int(count) for code, count in zip(codes, counts, strict=True)}
    known = {item.code for item in manifest.classes} | {manifest.ignore_code}
    for code in sorted(areas.keys() - known):
        yield Finding(path, f"code {code} ({areas[code]} px) is not in the class table")
    if {str(code): area for code, area in areas.items()} != {c: n for c, n in entry.class_pixels.items() if n}:
        yield Finding(path, "areas by class differ from the manifest's class_pixels")
    if set(areas) <= {manifest.ignore_code}:
        yield Finding(path, "empty: no pixel is annotated")
    elif entry.instances is not None and set(areas) <= {0, manifest.ignore_code}:
        yield Finding(path, "empty: not one instance; right only if the image shows none", note=True)


def _instance_findings(entry: ImageEntry, mask: NDArray[Any], instances: NDArray[Any]) -> Iterator[Finding]:
    if entry.instances is None:
        return
    differing = int(np.count_nonzero((instances > 0) != (mask == 1)))
    if differing:
        yield Finding(entry.instances.path, f"disagrees with the mask in {differing} px")
    count = int(np.unique(instances[instances > 0]).size)
    if count != entry.counts.get("instances", count):
        yield Finding(entry.instances.path, f"{count} instances, the manifest says {entry.counts['instances']}")


def _mpp_findings(entry: ImageEntry) -> Iterator[Finding]:
    low, high = MPP_RANGE
    if entry.mpp is None:
        yield Finding(entry.name, "mpp unknown; pass --mpp when preparing if it is known", note=True)
    elif not low <= entry.mpp <= high:
        yield Finding(entry.name, f"mpp {entry.mpp:g} is outside {low:g}–{high:g} µm per pixel")


def _table_findings(manifest: Manifest) -> Iterator[Finding]:
    """Windows that lie on no image; names and classes that occur twice."""
    size = manifest.windows.size_px
    for number, (image, x, y) in enumerate(manifest.windows.rows):
        if not 0 <= image < len(manifest.images):
            yield Finding(f"window {number}", f"refers to image {image} of {len(manifest.images)}")
            continue
        entry = manifest.images[image]
        right, bottom = max(entry.width_px - size, 0), max(entry.height_px - size, 0)
        if not (0 <= x <= right and 0 <= y <= bottom):
            yield Finding(f"window {number}", f"({x}, {y}) of {size} px leaves {entry.name}")
    for name, count in Counter(entry.name for entry in manifest.images).items():
        if count > 1:
            yield Finding(name, f"listed {count} times")
    if [item.code for item in manifest.classes] != list(range(len(manifest.classes))):
        yield Finding("class table", "codes are not 0, 1, 2 …")


def _patient_leaks(manifest: Manifest) -> Iterator[Finding]:
    splits: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in manifest.images:
        splits[entry.patient].setdefault(entry.split, entry.name)
    for patient, names in splits.items():
        if len(names) > 1:
            where = ", ".join(f"{split} ({name})" for split, name in names.items())
            yield Finding(f"patient {patient}", f"leak: in the splits {where}")


def _pixel_leaks(twins: dict[str, list[ImageEntry]]) -> Iterator[Finding]:
    for entries in twins.values():
        if len(entries) > 1:
            splits = sorted({entry.split for entry in entries})
            what = f"leak between {' and '.join(splits)}" if len(splits) > 1 else f"doubled within {splits[0]}"
            yield Finding(entries[0].image.path, f"{what}: same pixels as {entries[1].image.path}")


def _strays(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Files that the manifest does not list, and what an interrupted run left."""
    listed = manifest.files()
    for name in FOLDERS:
        for path in sorted((folder / name).glob("*")):
            if f"{name}/{path.name}" not in listed:
                yield Finding(f"{name}/{path.name}", "not in the manifest; remove it or prepare the set again")
    if (folder / WORK).exists():
        yield Finding(WORK, "left by an interrupted run; run `seunet data prepare` again")
