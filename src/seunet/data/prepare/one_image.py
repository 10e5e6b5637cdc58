"""One image and its annotation → prepared files and their record.

This is what runs in a worker process (worker.py): plain values in, plain values out, every file of unknown
origin decoded here and nowhere in the parent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from seunet.data.formats.imagescope import Annotation, parse_annotation
from seunet.data.prepare.outlines import paint_regions
from seunet.errors import InputError
from seunet.images import pillow_codec as raster
from seunet.images.resolution import check_mpp
from seunet.limits import MAX_IMAGE_BYTES, MAX_REGIONS, MAX_XML_BYTES
from seunet.maths.windows import annotated_fraction, window_grid
from seunet.storage.atomic import write_bytes
from seunet.storage.files import read_limited, sha256

IGNORE_CODE = 255
MAX_CODE = 65_535
NOT_BINARY = (
    "are neither 0 nor 1 or 255; save the mask without grey levels, or leave out --binary "
    "(numbered objects: --kind instances; classes: --class-map)"
)
CORRECTED = "corrected"
"""The source of an mpp that goes before what a file states, because the file is known to be wrong."""


class Job(TypedDict):
    """What a worker gets to know about one image."""

    name: str
    split: str
    patient: str
    image: str
    annotation: str
    kind: str  # "outlines" (ImageScope XML) | "codes" (class mask) | "binary" (0 and 255) | "instances" (instance map)
    mpp: float | None
    mpp_source: str
    code_map: dict[str, int]
    palette: list[list[int]]
    classes: int
    clip: bool
    window_px: int
    stride_px: int
    min_annotated: float
    stain: str | None
    dest: str


class Labels(NamedTuple):
    """What an annotation says of an image."""

    mask: NDArray[np.uint8]
    instances: NDArray[np.uint16] | None
    mpp: float | None
    mpp_source: str
    counts: dict[str, int]
    decisions: list[str]


def prepare_image(job: Job) -> dict[str, Any]:
    """Write images/, masks/ and instances/ files for one image; return its record for the manifest."""
    image_path, annotation_path = Path(job["image"]), Path(job["annotation"])
    image_bytes = raster.read_image(image_path)
    annotation_limit = MAX_XML_BYTES if job["kind"] == "outlines" else MAX_IMAGE_BYTES
    annotation_bytes = read_limited(annotation_path, annotation_limit)
    rgb, decisions = raster.decode_rgb(image_bytes, image_path.name)
    labels = _read_labels(job, annotation_bytes, annotation_path.name, rgb.shape[0], rgb.shape[1])
    decisions = decisions + labels.decisions
    if job["stain"] is not None:
        from seunet.data.stain import normalise_stain

        rgb, sentence = normalise_stain(rgb, method=job["stain"])
        decisions.append(sentence)
    height, width = labels.mask.shape
    kept, left_out = annotated_windows(labels.mask, job["window_px"], job["stride_px"], job["min_annotated"])
    areas = np.bincount(labels.mask.ravel(), minlength=256)
    codes = [*range(job["classes"]), IGNORE_CODE]
    return {
        "name": job["name"],
        "split": job["split"],
        "patient": job["patient"],
        "mpp": labels.mpp,
        "mpp_source": labels.mpp_source,
        "width_px": width,
        "height_px": height,
        "image": _write(job, "images", rgb, None),
        "mask": _write(job, "masks", labels.mask, job["palette"]),
        "instances": None if labels.instances is None else _write(job, "instances", labels.instances, None),
        "source": {
            "image": {"file": image_path.name, "sha256": sha256(image_bytes)},
            "annotation": {"file": annotation_path.name, "sha256": sha256(annotation_bytes)},
        },
        "class_pixels": {str(code): int(areas[code]) for code in codes},
        "counts": labels.counts,
        "decisions": decisions,
        "windows": kept,
        "windows_left_out": left_out,
    }


def annotated_windows(
    mask: NDArray[Any], size_px: int, stride_px: int, min_annotated: float
) -> tuple[list[list[int]], int]:
    """[x, y] of the windows with so much of their area annotated, and how many others there are."""
    grid = window_grid(mask.shape[0], mask.shape[1], size_px, stride_px)
    kept = [[x, y] for x, y in grid if annotated_fraction(mask, x, y, size_px, IGNORE_CODE) >= min_annotated]
    return kept, len(grid) - len(kept)


def _write(job: Job, folder: str, pixels: NDArray[Any], palette: list[list[int]] | None) -> dict[str, str]:
    data = raster.encode_png(pixels, palette)
    path = f"{folder}/{job['name']}.png"
    write_bytes(Path(job["dest"]) / path, data)
    return {"path": path, "sha256": sha256(data), "pixel_sha256": raster.pixel_sha256(pixels)}


def _read_labels(job: Job, data: bytes, name: str, height: int, width: int) -> Labels:
    if job["kind"] == "outlines":
        annotation = parse_annotation(data, name)
        painted = paint_regions(annotation.regions, name, height, width, clip=job["clip"])
        mpp, source = _outline_mpp(job, annotation, name)
        decisions = painted.decisions
        if annotation.layers > 1:
            decisions.append(f"{annotation.layers} annotation layers read as one")
        mask = (painted.instances > 0).astype(np.uint8)
        return Labels(mask, painted.instances, mpp, source, painted.counts, decisions)
    codes, decisions = raster.decode_codes(data, name)
    if codes.shape != (height, width):
        raise InputError(
            f"{name}: mask is {codes.shape[1]}×{codes.shape[0]}, its image {width}×{height}; export both at one size"
        )
    if job["kind"] == "instances":
        if codes.max(initial=0) > MAX_REGIONS:
            raise InputError(f"{name}: instance {codes.max()} is above {MAX_REGIONS:,}; number the instances from 1")
        instances = codes.astype(np.uint16)
        mask = (instances > 0).astype(np.uint8)
        counts = {"instances": int(np.unique(instances[instances > 0]).size)}
        return Labels(mask, instances, job["mpp"], job["mpp_source"], counts, decisions)
    remedy = NOT_BINARY if job["kind"] == "binary" else "are not in the class map (known: {known}); add them"
    mask, counts = _map_codes(codes, job["code_map"], name, remedy)
    return Labels(mask, None, job["mpp"], job["mpp_source"], counts, decisions)


def _outline_mpp(job: Job, annotation: Annotation, name: str) -> tuple[float | None, str]:
    """--mpp first, then what is known of this image, then the file, then the nominal value of the set."""
    if job["mpp_source"] in ("user", CORRECTED) or annotation.mpp is None:
        return job["mpp"], job["mpp_source"]
    return check_mpp(annotation.mpp, f"{name} MicronsPerPixel"), "annotation"


def _map_codes(
    codes: NDArray[Any], code_map: dict[str, int], name: str, remedy: str
) -> tuple[NDArray[np.uint8], dict[str, int]]:
    """Source codes → class codes; a code the map does not know is an error that counts its pixels."""
    areas = np.bincount(codes.ravel()[codes.ravel() <= MAX_CODE], minlength=1)
    found = {int(code): int(areas[code]) for code in np.flatnonzero(areas)}
    if codes.max(initial=0) > MAX_CODE:
        found[int(codes.max())] = int(np.count_nonzero(codes > MAX_CODE))
    unknown = [f"{code} ({count} px)" for code, count in found.items() if str(code) not in code_map]
    if unknown:
        known = ", ".join(sorted(code_map, key=int))
        raise InputError(f"{name}: codes {', '.join(unknown[:8])} {remedy.format(known=known)}")
    table = np.zeros(len(areas), dtype=np.uint8)
    for code in found:
        table[code] = code_map[str(code)]
    return table[codes], {f"source_code_{code}_px": count for code, count in found.items()}
