"""The matrix of trials: every image object, every runtime, every Python and condition; one table, `make matrix`.

    python -m benchmarks.reliability.matrix [--environments FOLDER]

FOLDER is what `python tools/try_wheel.py PYTHON … --keep FOLDER` left: an environment of each Python with the wheel in
it.  Without it only this Python is tried.  A cell is "ok", what went wrong, or why it was not tried.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import WHEELS, Benchmark
from benchmarks.record import write_results
from benchmarks.reliability.conditions import OK, python_rows, sample_pixels, tried
from seunet.export import run_by
from support.cli import seunet as command
from support.image_objects import Given, image_objects

BENCHMARK = Benchmark(
    "reliability.matrix", ("results/benchmarks/matrix.json",), 10, "--environments wheels", needs=(WHEELS,)
)

ODD_SIZES: Final = ((1, 5), (2, 3), (7, 16), (15, 81), (33, 47), (64, 65), (97, 31), (101, 67), (130, 127), (255, 193))
DEMO_SIZES: Final = (0.5, 1.0, 1.5)


def overlap(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """IoU of the foreground; 1 where neither has any."""
    either = ((found == 1) | (expected == 1)).sum()
    return float(((found == 1) & (expected == 1)).sum() / either) if either else 1.0


def object_rows(folder: Path) -> dict[str, dict[str, str]]:
    """Each object by each part of the interface; labels must be those of the pixels that are meant."""
    expected: dict[bytes, NDArray[Any]] = {}
    rows = {}
    for name, given in image_objects(sample_pixels(256), folder).items():
        meant = given.pixels.tobytes()
        if meant not in expected:
            expected[meant] = seunet.segment(given.pixels, mpp=0.25).labels

        def labels(given: Given = given, labels: NDArray[Any] = expected[meant]) -> str:
            shared = overlap(seunet.segment(given.image, mpp=0.25).labels, labels)
            return OK if shared >= 0.999 else f"IoU {shared:.4f}"

        def given_out(given: Given = given, name: str = name) -> str:
            found = seunet.segment(given.image, mpp=0.25)
            found.save(folder / f"saved-{name}")
            listed, written = len(found.objects), len(found.to_geojson()["features"])
            whole = listed == written and bool(listed) == bool((found.labels == 1).any())
            return OK if whole and found.overlay().ndim == 3 else f"{listed} objects, {written} in GeoJSON"

        def scale(given: Given = given) -> str:
            return OK if seunet.segment(given.image).labels.ndim == 2 else "no labels"

        rows[name] = {
            "segment": tried(labels),
            "objects, overlay, save": tried(given_out),
            "told no scale": tried(scale),
        }
    return rows


def runtime_rows(folder: Path) -> dict[str, dict[str, str]]:
    """Ten odd sizes by their logits, and the demo image at three sizes by its labels, from file to file."""
    model: Any = seunet.load("nuclei")
    head = model.only_scale(model.card.matched_head - 1)
    rows: dict[str, dict[str, str]] = {}
    for runtime in ("onnx", "openvino"):
        run = run_by(runtime, head, 1)

        def ten(run: Any = run) -> str:
            worst = 0.0
            for size in ODD_SIZES:
                pixels = np.random.default_rng(0).random((1, 3, *size), dtype=np.float32)
                with torch.inference_mode():
                    worst = max(worst, float(np.abs(run(pixels) - head(torch.from_numpy(pixels)).numpy()).max()))
            return OK if worst < 1e-4 else f"logits differ by {worst:.1e}"

        rows[runtime] = {"ten odd sizes": tried(ten)}
    whole = Image.fromarray(sample_pixels(512))
    for factor in DEMO_SIZES:
        side = round(512 * factor)
        image = folder / f"demo-{side}.png"
        whole.resize((side, side), Image.Resampling.LANCZOS).save(image)
        expected = file_labels(image, folder, "native", 0.25 / factor)
        for runtime, row in rows.items():

            def same(
                runtime: str = runtime, expected: Any = expected, image: Path = image, mpp: float = 0.25 / factor
            ) -> str:
                shared = overlap(file_labels(image, folder, runtime, mpp), expected)
                return f"{OK}, IoU {shared:.5f}" if shared >= 0.999 else f"IoU {shared:.5f}"

            row[f"demo image, {side} px"] = tried(same)
    return rows


def file_labels(image: Path, folder: Path, runtime: str, mpp: float) -> NDArray[Any]:
    """`seunet segment`: labels.tif."""
    out = folder / f"out-{runtime}"
    ran = command("segment", image, "-o", out, "--runtime", runtime, "--mpp", mpp, "--no-progress")
    if ran.code:
        raise RuntimeError(ran.err)
    return np.asarray(tifffile.imread(out / image.stem / "labels.tif"))


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--environments", type=Path, help="kept by tools/try_wheel.py")
    return made


def main() -> int:
    """Try everything, print one table for each side of the matrix, exit 1 if a cell is neither ok nor not tried."""
    asked = parser().parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = {
            "objects": object_rows(folder),
            "runtimes": runtime_rows(folder),
            "pythons": python_rows(folder, asked.environments),
        }
    print(write_results(BENCHMARK, figures))
    cells = [
        f"{row}, {column}: {cell}"
        for part in figures.values()
        for row, columns in part.items()
        for column, cell in columns.items()
        if not cell.startswith((OK, "not tried"))
    ]
    print("\n".join(cells) or "all green")
    return 1 if cells else 0


if __name__ == "__main__":
    sys.exit(main())
