"""Lay out CoNSeP, CPM17, TNBC and DSB2018 for `seunet data prepare folder`: images/, labels_inst/ and table.csv each.

    python tools/nuclei_sets.py downloads/nuclei-more sets
    seunet data prepare folder sets/consep prepared/consep --table sets/consep/table.csv --window 400 --stride 200

SRC holds SET/PART/images and SET/PART/labels_inst (uint16, one number per nucleus).  The patches of CoNSeP, which is
passed around as 16 patches per image, are joined: a window at low magnification needs more than 256 px.
The table says what the pixels do not: patient, split and µm per pixel, where it is known.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

CONSEP_MPP = 0.275
"""40 × of an Omnyx VL120, by the scanner's figure (Graham et al. 2019)."""
TNBC_MPP = 0.25
"""40 × (Naylor et al. 2018)."""

PATCH, SIDE = 256, 1000
EDGE = SIDE - PATCH
INNER = range(0, EDGE, PATCH)
CORNERS = (
    [(x, y) for y in INNER for x in INNER] + [(x, EDGE) for x in INNER] + [(EDGE, y) for y in INNER] + [(EDGE, EDGE)]
)
"""Where the 16 patches of an image lie: whole ones row by row, then the lower edge, the right edge and the corner."""


class Item(NamedTuple):
    """One image of a set; `mpp` is empty where nobody knows."""

    name: str
    pixels: np.ndarray
    instances: np.ndarray
    patient: str
    split: str
    mpp: str


def consep(source: Path) -> Iterator[Item]:
    """The images of 1000² joined from their patches; which images are of one patient is not published."""
    for split in ("train", "test"):
        folder = source / "consep" / split
        numbers = sorted({int(path.name.split("_")[1]) for path in (folder / "images").iterdir()})
        for number in numbers:
            name = f"{split}_{number}"
            pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
            instances = np.zeros((SIDE, SIDE), np.uint16)
            for place, (x, y) in enumerate(CORNERS):
                patch = f"{name}_{place:03d}"
                pixels[y : y + PATCH, x : x + PATCH] = np.asarray(Image.open(folder / "images" / f"{patch}.jpg"))
                instances[y : y + PATCH, x : x + PATCH] = np.asarray(
                    Image.open(folder / "labels_inst" / f"{patch}.png")
                )
            yield Item(name, pixels, instances, name, split, str(CONSEP_MPP))


def tnbc(source: Path) -> Iterator[Item]:
    """50 images of 11 patients; the first number of a name is the patient."""
    return _as_they_are(source / "tnbc" / "all", "", "train", str(TNBC_MPP), r"^(\d+)_")


def cpm17(source: Path) -> Iterator[Item]:
    """64 images to choose and measure by: no licence allows training, so all are in the split `test`.

    Nominally 40 ×, some 20 ×; which is not published, so the table has no mpp.
    """
    for part in ("train", "test"):
        yield from _as_they_are(source / "cpm17" / part, f"{part}_", "test", "", None)


def dsb2018(source: Path) -> Iterator[Item]:
    """105 images of unknown and varied resolution."""
    return _as_they_are(source / "dsb2018" / "all", "", "train", "", None)


def _as_they_are(folder: Path, prefix: str, split: str, mpp: str, patient: str | None) -> Iterator[Item]:
    for path in sorted((folder / "images").iterdir()):
        name = prefix + path.stem
        match = re.search(patient, path.stem) if patient else None
        instances = np.asarray(Image.open(folder / "labels_inst" / f"{path.stem}.png"))
        yield Item(
            name, np.asarray(Image.open(path).convert("RGB")), instances, match[1] if match else name, split, mpp
        )


SETS = {"consep": consep, "tnbc": tnbc, "cpm17": cpm17, "dsb2018": dsb2018}


def lay_out(source: Path, dest: Path, name: str) -> int:
    """Write one set; how many images it has."""
    for folder in ("images", "labels_inst"):
        (dest / name / folder).mkdir(parents=True, exist_ok=True)
    rows = [("image", "patient", "split", "mpp")]
    for item in SETS[name](source):
        Image.fromarray(item.pixels).save(dest / name / "images" / f"{item.name}.png")
        Image.fromarray(item.instances).save(dest / name / "labels_inst" / f"{item.name}.png")
        rows.append((f"{item.name}.png", item.patient, item.split, item.mpp))
    with (dest / name / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return len(rows) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("dest", type=Path)
    arguments = parser.parse_args()
    for name in SETS:
        if (arguments.source / name).is_dir():
            print(f"{name}: {lay_out(arguments.source, arguments.dest, name)} images")


if __name__ == "__main__":
    main()
