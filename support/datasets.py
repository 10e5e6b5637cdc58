"""Small data sets in the published layouts, made from a seed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from seunet.data.formats import PUBLISHED

Ring = Sequence[tuple[float, float]]


def he_pixels(size_px: int, seed: int) -> NDArray[np.uint8]:
    """A pink ground with violet discs and noise: [size, size, 3]."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size_px, :size_px]
    pixels = np.empty((size_px, size_px, 3))
    pixels[:] = (225, 160, 200)
    for x, y, radius in random.uniform((0, 0, 3), (size_px, size_px, 8), (size_px // 6, 3)):
        pixels[(columns - x) ** 2 + (rows - y) ** 2 < radius**2] = (110, 70, 150)
    pixels += random.normal(0, 6, pixels.shape)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def disc(x: float, y: float, radius: float, vertices: int = 24) -> list[tuple[float, float]]:
    """A round ring."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    return [(round(x + radius * float(np.cos(a)), 3), round(y + radius * float(np.sin(a)), 3)) for a in angles]


def imagescope_xml(rings: Sequence[Ring], mpp: str | None = "0.2520", region_attributes: str = "") -> str:
    """An ImageScope file with these outlines."""
    regions = "".join(
        f'<Region Id="{number}" Type="0" NegativeROA="0" {region_attributes}><Attributes/><Vertices>'
        + "".join(f'<Vertex X="{x}" Y="{y}"/>' for x, y in ring)
        + "</Vertices></Region>\n"
        for number, ring in enumerate(rings, start=1)
    )
    header = '<RegionAttributeHeaders><AttributeHeader Id="9999" Name="Region"/></RegionAttributeHeaders>'
    attribute = f' MicronsPerPixel="{mpp}"' if mpp is not None else ""
    return (
        f'<Annotations{attribute}><Annotation Id="1" Type="4"><Attributes><Attribute Name="Description"/>'
        f"</Attributes><Regions>{header}{regions}</Regions><Plots/></Annotation></Annotations>"
    )


def write_image(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Save in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write_monuseg(root: Path, train: int = 2, test: int = 1, size_px: int = 64) -> Path:
    """The two archives as extracted, with `train` + `test` images."""
    training, testing = root / "MoNuSeg 2018 Training Data", root / "MoNuSegTestData"
    places = [(training / "Tissue Images", training / "Annotations")] * train + [(testing, testing)] * test
    for number, (images, outlines) in enumerate(places):
        name = f"TCGA-{number:02d}-{1000 + number}-01Z-00-DX1"
        write_image(images / f"{name}.tif", he_pixels(size_px, number))
        outlines.mkdir(parents=True, exist_ok=True)
        rings = [disc(12, 14, 6), disc(40, 20, 7.3), disc(30, 45, 5), disc(size_px, 50, 3)]
        (outlines / f"{name}.xml").write_text(imagescope_xml(rings))
    return root


def write_bcss(root: Path, sites: Sequence[str] = ("A1", "OL"), size_px: int = 96, codes: bool = True) -> Path:
    """Regions and masks named as published; the masks hold all 22 codes in bands."""
    for number, site in enumerate(sites):
        name = f"TCGA-{site}-A0S{number}-DX1_xmin{100 * number}_ymin{7}_MPP-0.2500.png"
        write_image(root / "rgbs_colorNormalized" / name, he_pixels(size_px, number))
        mask = np.repeat((np.arange(size_px) * 22 // size_px)[None], size_px, axis=0).astype(np.uint8)
        write_image(root / "masks" / name, mask)
    if codes:
        lines = ["label\tGT_code", *(f"{label}\t{code}" for label, code in PUBLISHED.items())]
        (root / "meta").mkdir(exist_ok=True)
        (root / "meta" / "gtruth_codes.tsv").write_text("\n".join(lines) + "\n")
    return root


def write_lab(root: Path, patients: int = 4, images_each: int = 2, size_px: int = 48) -> Path:
    """images/ and masks/ of a lab, named P<patient>_<number>, codes 0, 1, 2 and 9."""
    for patient in range(patients):
        for number in range(images_each):
            name = f"P{patient}_{number}.png"
            write_image(root / "images" / name, he_pixels(size_px, 10 * patient + number))
            mask = np.zeros((size_px, size_px), dtype=np.uint8)
            mask[: size_px // 2] = 1
            mask[:, : size_px // 4] = 2
            mask[-4:, -4:] = 9
            write_image(root / "masks" / name, mask)
    return root


def write_csv(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """A table."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    path.write_text(out.getvalue())
    return path


def class_map(path: Path) -> Path:
    """The class map that fits `write_lab`."""
    return write_csv(path, [("code", "class"), (0, "other"), (1, "tumour"), (2, "stroma"), (9, "ignore")])


def tree_bytes(root: Path) -> dict[str, bytes]:
    """Every file below `root`, hidden ones too."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def write_nuclei(root: Path, images: int = 6, size_px: int = 64) -> Path:
    """images/ and masks/ of a lab whose masks show what the images show: 1 on violet discs, 0 beside them, 9 unseen.

    Image n has n unseen rows at its foot, so that windows differ in how many pixels are labelled.
    """
    for number in range(images):
        pixels = he_pixels(size_px, 100 + number)
        mask = (pixels[..., 0] < 168).astype(np.uint8)
        mask[size_px - number :] = 9
        write_image(root / "images" / f"N{number}.png", pixels)
        write_image(root / "masks" / f"N{number}.png", mask)
    return root


def write_touching(root: Path, images: int = 4, size_px: int = 96) -> Path:
    """images/ and labels_inst/ of pairs of violet squares that touch along a paler line, which no outline shows."""
    for number in range(images):
        random = np.random.default_rng(number)
        pixels = np.full((size_px, size_px, 3), (225.0, 160.0, 200.0))
        instances = np.zeros((size_px, size_px), dtype=np.uint16)
        for pair, (y, x) in enumerate((y, x) for y in range(6, size_px - 16, 30) for x in range(6, size_px - 26, 34)):
            top, left = y + int(random.integers(0, 6)), x + int(random.integers(0, 6))
            pixels[top : top + 14, left : left + 24] = (110, 70, 150)
            pixels[top : top + 14, left + 11 : left + 13] = (165, 120, 190)
            instances[top : top + 14, left : left + 12] = 2 * pair + 1
            instances[top : top + 14, left + 12 : left + 24] = 2 * pair + 2
        pixels += random.normal(0, 6, pixels.shape)
        write_image(root / "images" / f"T{number}.png", np.clip(pixels, 0, 255).astype(np.uint8))
        (root / "labels_inst").mkdir(parents=True, exist_ok=True)
        Image.fromarray(instances).save(root / "labels_inst" / f"T{number}.png")
    return root
