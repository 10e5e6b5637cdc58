"""Figures of the data room on real data: `make bench-data`.

    python -m benchmarks.measure.data [monuseg] [bcss] [loader]

Real data is looked for in $SEUNET_DATA or ../shared/data; without it those figures are left out.  One thread
for what is claimed for one core.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.declare import REAL, Benchmark
from benchmarks.measure.data.rules import rule_figures
from benchmarks.record import write_results
from seunet.data import Manifest, verify
from seunet.data.formats import plan_bcss, plan_monuseg
from seunet.data.prepare import PrepareSettings, prepare
from support.datasets import he_pixels
from support.real_data import real_data

BENCHMARK = Benchmark(
    "measure.data",
    ("results/benchmarks/data.json",),
    5,
    needs=(REAL,),
)


PARTS = ("monuseg", "bcss", "loader")


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("parts", nargs="*", metavar="|".join(PARTS), help="default: all")
    return made


def main() -> None:
    """Measure what was asked for, or all."""
    wanted = parser().parse_args().parts or PARTS
    data = real_data()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if data is not None:
            subprocess.run([sys.executable, str(data / "unpack"), str(scratch / "raw")], check=True)
            figures["monuseg"] = monuseg_figures(data, scratch)
            if "bcss" in wanted:
                figures["bcss"] = bcss_figures(scratch)
        if "loader" in wanted and data is not None:
            from benchmarks.measure.data.loader import loader_figures

            figures["loader"] = loader_figures(scratch / "monuseg")
    print(write_results(BENCHMARK, figures))


def monuseg_figures(data: Path, scratch: Path) -> dict[str, Any]:
    """All 44 images: time, windows, agreement with published instance maps where outlines are original."""
    dest = scratch / "monuseg"
    began = time.monotonic()
    manifest = prepare(plan_monuseg(scratch / "raw" / "monuseg", dest, PrepareSettings()), dest).manifest
    seconds = time.monotonic() - began
    with (data / "monuseg" / "manifest.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file) if row["label_source"] == "xml"}
    overlap, unequal = {}, []
    for image in manifest.images:
        if image.name in rows and image.instances is not None:
            label = data / "monuseg" / image.split / "labels_inst" / f"{image.name}.png"
            ours, theirs = (np.asarray(Image.open(path)) > 0 for path in (dest / image.instances.path, label))
            overlap[image.name] = float((ours & theirs).sum() / (ours | theirs).sum())
            if image.counts["instances"] != int(rows[image.name]["instances_in_label"]):
                unequal.append(image.name)
    return {
        "images": len(manifest.images),
        "windows": manifest.window_counts(),
        "seconds": round(seconds, 1),
        "nuclei": sum(image.counts["instances"] for image in manifest.images),
        "original_outlines": len(overlap),
        "lowest_iou": round(min(overlap.values()), 5),
        "mean_iou": round(sum(overlap.values()) / len(overlap), 5),
        "files_with_another_count_of_nuclei": unequal,
        "clipped_vertices": sum(image.counts["clipped_vertices"] for image in manifest.images),
        "findings_of_verify": len(verify(dest)),
        "rules": rule_figures(data, {image.name: image.split for image in manifest.images if image.name in rows}),
    }


def bcss_figures(scratch: Path) -> dict[str, Any]:
    """The eight real masks under made images in the published layout: areas, and one counted another way."""
    source, dest = scratch / "bcss-src", scratch / "bcss"
    for name in ("masks", "rgbs_colorNormalized", "meta"):
        (source / name).mkdir(parents=True)
    raw = scratch / "raw" / "bcss"
    (source / "meta" / "gtruth_codes.tsv").write_bytes((raw / "meta" / "gtruth_codes.tsv").read_bytes())
    tile = he_pixels(256, 0)
    for number, mask in enumerate(sorted((raw / "roi_masks").glob("*.png"))):
        (source / "masks" / mask.name).write_bytes(mask.read_bytes())
        width, height = Image.open(mask).size
        pixels = np.tile(np.roll(tile, number, axis=1), (height // 256 + 1, width // 256 + 1, 1))[:height, :width]
        Image.fromarray(pixels).save(source / "rgbs_colorNormalized" / mask.name, compress_level=1)
    began = time.monotonic()
    manifest = prepare(
        plan_bcss(source, dest, PrepareSettings(window_px=512, stride_px=512, min_annotated=0.5)), dest
    ).manifest
    return {
        "seconds": round(time.monotonic() - began, 1),
        "windows": manifest.window_counts(),
        "windows_left_out": sum(image.windows_left_out for image in manifest.images),
        "areas_px": {image.name.split("_")[0]: _named_areas(manifest, image.class_pixels) for image in manifest.images},
        "by_histogram": _by_histogram(source / "masks" / f"{manifest.images[0].name}.png"),
        "findings_of_verify": len(verify(dest)),
    }


def _named_areas(manifest: Manifest, areas: dict[str, int]) -> dict[str, int]:
    names = {str(entry.code): entry.name for entry in manifest.classes} | {str(manifest.ignore_code): "ignore"}
    return {names[code]: area for code, area in areas.items()}


def _by_histogram(path: Path) -> dict[str, int]:
    """The areas of one mask from Pillow's histogram and the groups as the paper's notes list them."""
    histogram = Image.open(path).histogram()
    groups = {
        "tumour": (1, 19, 20),
        "stroma": (2,),
        "inflammatory": (3, 10, 11),
        "necrosis": (4,),
        "ignore": (0,),
    }
    areas = {name: sum(histogram[code] for code in codes) for name, codes in groups.items()}
    return {"other": sum(histogram) - sum(areas.values()), **areas}


if __name__ == "__main__":
    main()
