"""Outlines and result files at full size: 1,000 random masks, 100,000 polygons, 518,400 nuclei on 40,000 × 40,000.

    python -m benchmarks.measure.segmentation.objects [masks] [polygons] [slide]

What is left out is kept from the last run if that was of the same commit.  Memory is that of a process of its own for
each figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.declare import Benchmark
from benchmarks.record import MEASURED, ROOT, commit, write_results
from benchmarks.stages import counted
from seunet.results import CONFIDENCE, HAEMATOXYLIN, Frame, MeasuredPlane, objects, write_geojson
from seunet.results import write_results as write_files
from seunet.training import peak_memory_bytes
from support.geojson import check_qupath, painted, polygon_of, read_geojson
from support.planes import ArrayPlane, discs, nuclei_frame, random_codes

BENCHMARK = Benchmark(
    "measure.segmentation.objects",
    ("results/benchmarks/objects.json",),
    5,
)

MASKS, POLYGONS = 1_000, 100_000
BLOCK_PX, IN_BLOCK = 1000, 121
ALONG, ALONG_DENSE = 11, 18
"""Nuclei along the side of a block: as on most slides, and as many as make half a million on 40,000²."""
PARTS = ("masks", "polygons", "slide")
STAGES = {
    "runs and what hangs together": ("seunet.results.components:runs_in", "seunet.results.components:link_runs"),
    "reading the plane": (f"{__name__}:Tiles.read",),
    "splitting": ("seunet.results.splitting:split_objects",),
    "outlines": ("seunet.results.outlines:trace_objects",),
    "digits": ("seunet.results.texts:coordinates_texts", "seunet.results.texts:numbers_between"),
    "means of planes": ("seunet.results.measures:add_over_runs",),
    "ids, features and lines": ("seunet.results.geojson:features",),
    "labels.tif": ("seunet.results.write:write_label_tiff",),
    "overlay.png": ("seunet.results.write:overlay_picture", "seunet.results.write:write_overlay"),
    "finding and handing on objects": ("seunet.results.write:write_objects",),
}
FRAME = Frame(1.0, 0, 0, 0.25, ("background", "nucleus"), ((0, 0, 0), (255, 214, 64)))


class Tiles:
    """One block of nuclei over and over: a plane of any size that takes the memory of a block."""

    def __init__(self, height_px: int, width_px: int, along: int = ALONG) -> None:
        self.height_px, self.width_px = height_px, width_px
        random = np.random.default_rng(0)
        step = (BLOCK_PX - 10) // along
        places = np.stack(np.meshgrid(*[np.arange(along) * step + step // 2] * 2), axis=-1).reshape(-1, 2)
        shift, most = step * 2 // 9, step * 11 // 45
        shifts, radii = random.integers(-shift, shift + 1, places.shape), random.uniform(5, most, len(places))
        circles = [(float(r), float(c), float(radius)) for (r, c), radius in zip(places + shifts, radii, strict=True)]
        self._block = discs(BLOCK_PX, BLOCK_PX, circles)

    def read(self, y: int, x: int, height_px: int, width_px: int) -> NDArray[np.uint8]:
        columns = np.arange(x, x + width_px) % BLOCK_PX
        return self._block[np.arange(y, y + height_px) % BLOCK_PX][:, columns]


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("parts", nargs="*", metavar="|".join(PARTS), help="default: all")
    made.add_argument("--child", nargs=2, help=argparse.SUPPRESS)  # a process of its own: what, how many
    return made


def main() -> None:
    """Measure what was asked for and write results/benchmarks/objects.json."""
    given = parser().parse_args()
    if given.child:
        print(json.dumps(CHILDREN[given.child[0]](int(given.child[1]))))
        return
    asked = given.parts or PARTS
    kept = MEASURED / "objects.json"
    last = json.loads(kept.read_text()) if kept.is_file() else {}
    same = last.get("commit") == commit()
    figures: dict[str, Any] = {part: last[part] for part in PARTS if same and part in last}
    if "masks" in asked:
        figures["masks"] = mask_figures(MASKS)
    if "polygons" in asked:
        figures["polygons"] = [in_a_process("polygons", number) for number in (POLYGONS // 10, POLYGONS)]
    if "slide" in asked:
        figures["slide"] = [in_a_process("slide", side_px) for side_px in (10_000, 40_000)]
    print(write_results(BENCHMARK, figures))
    wrong = [
        row
        for row in figures.get("masks", [])
        if row["invalid"] or row["min_iou"] < 0.999 or row["max_area_error"] > 0.005
    ]
    if wrong:
        sys.exit("not as it must be: an invalid polygon, or another area or other pixels than those it came from")


def mask_figures(number: int) -> list[dict[str, Any]]:
    """Random masks → GeoJSON → polygons and pixels, with and without smoothing, at two scales."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for smooth, scale in ((False, 1.0), (False, 1.9834), (True, 1.9834)):
            row = masks_there_and_back(number, Path(folder) / "mask.geojson", scale, smooth)
            rows.append({"smooth": smooth, "scale_to_level0": scale, **row})
    return rows


def masks_there_and_back(number: int, path: Path, scale: float, smooth: bool) -> dict[str, Any]:
    """One random mask after the other: the areas are those of whole masks and of each polygon in it."""
    random, frame = np.random.default_rng(2026), nuclei_frame(scale, offset=(11, 7))
    polygons, invalid, worst_area, least_iou = 0, 0, 0.0, 1.0
    for _ in range(number):
        height, width = (int(side) for side in random.integers(8, 48, 2))
        codes = random_codes(random, height, width)
        found = list(objects(ArrayPlane(codes), frame))
        write_geojson(path, found, frame, smooth=smooth)
        document = read_geojson(path)
        try:
            check_qupath(document)
        except AssertionError:
            invalid += 1
        for one, feature in zip(found, document["features"], strict=True):
            area = polygon_of(feature["geometry"]).area / scale**2
            worst_area = max(worst_area, abs(area / one.area_px - 1))
        polygons += len(found)
        back = painted(document, frame, height, width)
        for code in frame.object_codes:
            either = ((back == code) | (codes == code)).sum()
            if either:
                least_iou = min(least_iou, float(((back == code) & (codes == code)).sum() / either))
    return {
        "masks": number,
        "polygons": polygons,
        "invalid": invalid,
        "max_area_error": round(worst_area, 6),
        "min_iou": round(least_iou, 6),
    }


def in_a_process(name: str, number: int) -> dict[str, Any]:
    """A figure measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.measure.segmentation.objects", "--child", name, str(number)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def polygon_figures(number: int) -> dict[str, Any]:
    """So many polygons, and a few more, streamed into a file."""
    blocks = -(-number // (IN_BLOCK - 20))
    side = int(np.ceil(np.sqrt(blocks)))
    plane = Tiles(BLOCK_PX * -(-blocks // side), BLOCK_PX * side)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.geojson"
        write_geojson(path, objects(Tiles(BLOCK_PX, BLOCK_PX), FRAME), FRAME)  # compiles
        start, cpu = time.perf_counter(), time.process_time()
        written = write_geojson(path, objects(plane, FRAME), FRAME)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        size = path.stat().st_size
    return {
        "polygons": written,
        "megapixels": round(plane.height_px * plane.width_px / 1e6),
        "seconds": round(seconds, 1),
        "polygons_per_cpu_second": round(written / cpu_seconds),
        "bytes_per_polygon": round(size / written),
        "peak_memory_mib": round(peak_memory_bytes(torch.device("cpu")) / 2**20),
    }


def slide_figures(side_px: int) -> dict[str, Any]:
    """All files of one slide full of nuclei, and which stage takes how long."""
    plane, thumbnail = Tiles(side_px, side_px, ALONG_DENSE), np.full((2048, 2048, 3), 220, dtype=np.uint8)
    measured = {name: MeasuredPlane(plane, 255.0) for name in (HAEMATOXYLIN, CONFIDENCE)}
    with tempfile.TemporaryDirectory() as folder, counted(STAGES) as stages:
        write_files(Path(folder) / "small", Tiles(BLOCK_PX, BLOCK_PX), FRAME, thumbnail, measured=measured)  # compiles
        stages.clear()
        start, cpu = time.perf_counter(), time.process_time()
        tally = write_files(Path(folder) / "large", plane, FRAME, thumbnail, measured=measured)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        stages["all else"] = cpu_seconds - sum(stages.values())
        sizes = {file.name: file.stat().st_size for file in sorted((Path(folder) / "large").iterdir())}
    return {
        "side_px": side_px,
        "objects": int(tally.objects.sum()),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "cpu_seconds_by_stage": {stage: round(stages.get(stage, 0.0), 2) for stage in (*STAGES, "all else")},
        "bytes": sizes,
        "peak_memory_mib": round(peak_memory_bytes(torch.device("cpu")) / 2**20),
    }


CHILDREN = {"polygons": polygon_figures, "slide": slide_figures}


if __name__ == "__main__":
    main()
