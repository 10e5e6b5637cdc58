"""Faults to plant in a prepared set, each with the words that must be in its finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from seunet.images import pillow_codec as raster
from seunet.storage import sha256
from support.datasets import he_pixels

Plant = Callable[[Path, dict[str, Any]], object]


def _rewrite(folder: Path, entry: dict[str, Any], kind: str, pixels: np.ndarray) -> None:
    """Replace a file and make the manifest's hashes agree: only the content is wrong."""
    data = raster.encode_png(pixels)
    (folder / entry[kind]["path"]).write_bytes(data)
    entry[kind] |= {"sha256": sha256(data), "pixel_sha256": raster.pixel_sha256(pixels)}


def _areas(entry: dict[str, Any], mask: np.ndarray) -> None:
    entry["class_pixels"] = {code: int((mask == int(code)).sum()) for code in entry["class_pixels"]}


def _mask(folder: Path, manifest: dict[str, Any], change: Callable[[np.ndarray], np.ndarray]) -> None:
    entry = manifest["images"][0]
    mask = change(np.array(Image.open(folder / entry["mask"]["path"])))
    _rewrite(folder, entry, "mask", mask)
    _areas(entry, mask)


def _with_code(mask: np.ndarray) -> np.ndarray:
    mask[0, :5] = 77
    return mask


def _flip_byte(folder: Path, manifest: dict[str, Any]) -> None:
    path = folder / manifest["images"][0]["image"]["path"]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))


def _other_picture(folder: Path, manifest: dict[str, Any]) -> None:
    entry = manifest["images"][0]
    size = entry["height_px"]
    (folder / entry["image"]["path"]).write_bytes(raster.encode_png(he_pixels(size, 999)))


def _same_pixels(folder: Path, manifest: dict[str, Any], first: int, second: int) -> None:
    source, target = manifest["images"][first], manifest["images"][second]
    _rewrite(folder, target, "image", np.array(Image.open(folder / source["image"]["path"])))


def _cropped_instances(folder: Path, manifest: dict[str, Any]) -> None:
    entry = manifest["images"][0]
    instances = np.array(Image.open(folder / entry["instances"]["path"]))
    instances[instances == 1] = 0
    _rewrite(folder, entry, "instances", instances)


def _hash_only(folder: Path, manifest: dict[str, Any]) -> None:
    manifest["images"][0]["image"]["pixel_sha256"] = "0" * 64


def _set(key: str, value: Any) -> Plant:
    def plant(_folder: Path, manifest: dict[str, Any]) -> None:
        manifest["images"][0][key] = value

    return plant


FAULTS: dict[str, tuple[Plant, str]] = {
    "missing image": (lambda f, m: (f / m["images"][0]["image"]["path"]).unlink(), ".png: is missing"),
    "missing mask": (lambda f, m: (f / m["images"][0]["mask"]["path"]).unlink(), "is missing"),
    "missing instances": (lambda f, m: (f / m["images"][0]["instances"]["path"]).unlink(), "is missing"),
    "flipped bit": (_flip_byte, "images/"),
    "other picture": (_other_picture, "altered since it was prepared (sha256 differs)"),
    "pixel hash": (_hash_only, "pixels differ from the manifest's pixel_sha256"),
    "not an image": (
        lambda f, m: (f / m["images"][0]["mask"]["path"]).write_bytes(b"x"),
        "not a readable PNG",
    ),
    "mask of another size": (lambda f, m: _mask(f, m, lambda a: a[:-1]), "the manifest says"),
    "unknown code": (lambda f, m: _mask(f, m, _with_code), "code 77 (5 px) is not in the class table"),
    "areas": (_set("class_pixels", {"0": 1, "1": 1, "255": 0}), "differ from the manifest's class_pixels"),
    "all ignored": (lambda f, m: _mask(f, m, lambda a: np.full_like(a, 255)), "empty: no pixel is annotated"),
    "no instance": (lambda f, m: _mask(f, m, np.zeros_like), "empty: not one instance"),
    "lost instance": (_cropped_instances, "disagrees with the mask in"),
    "instance count": (lambda f, m: m["images"][0]["counts"].update(instances=99), "the manifest says 99"),
    "patient in two splits": (
        lambda f, m: m["images"][0].update(patient=m["images"][-1]["patient"]),
        "leak: in the splits train (",
    ),
    "picture in two splits": (
        lambda f, m: _same_pixels(f, m, 0, -1),
        "leak between test and train: same pixels as",
    ),
    "picture twice": (lambda f, m: _same_pixels(f, m, 0, 1), "doubled within train: same pixels as"),
    "impossible mpp": (_set("mpp", 250.0), "mpp 250 is outside 0.05–20 µm per pixel"),
    "window off the image": (lambda f, m: m["windows"]["rows"].append([0, 50, 0]), "leaves TCGA-"),
    "window of no image": (lambda f, m: m["windows"]["rows"].append([9, 0, 0]), "refers to image 9 of"),
    "listed twice": (lambda f, m: m["images"].append(m["images"][0]), "listed 2 times"),
    "class codes": (lambda f, m: m["classes"][1].update(code=7), "class table: codes are not 0, 1, 2"),
    "stray file": (
        lambda f, m: (f / "masks" / "stray.png").write_bytes(b"x"),
        "not in the manifest; remove it",
    ),
    "unfinished": (lambda f, m: (f / ".work").mkdir(), ".work: left by an interrupted run"),
    "path outside": (
        lambda f, m: m["images"][0]["image"].update(path="../../etc/passwd"),
        "lies outside the set; correct the manifest",
    ),
}


def plant(folder: Path, *names: str) -> None:
    """Plant these faults in a prepared set with train images first and a test image last."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in names:
        FAULTS[name][0](folder, manifest)
    path.write_text(json.dumps(manifest))
