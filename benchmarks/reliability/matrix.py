"""The matrix of trials: every image object, every runtime, every Python and condition; one table, `make matrix`.

    python -m benchmarks.reliability.matrix [--environments FOLDER]

FOLDER is what `python tools/try_wheel.py PYTHON … --keep FOLDER` left: an environment of each Python with the wheel in
it.  Without it only this Python is tried.  A cell is "ok", what went wrong, or why it was not tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, write_results
from seunet.export import run_by
from support.cli import seunet as command

BENCHMARK = Benchmark("reliability.matrix", ("results/benchmarks/matrix.json",), 4)

SAMPLE: Final = ROOT / "src" / "seunet" / "samples" / "OS-1-detail.ome.tif"
ODD_SIZES: Final = ((1, 5), (2, 3), (7, 16), (15, 81), (33, 47), (64, 65), (97, 31), (101, 67), (130, 127), (255, 193))
DEMO_SIZES: Final = (0.5, 1.0, 1.5)
OTHER_PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
NOBODY: Final = 65534
NOWHERE: Final = "/proc/none"
"""A folder that nobody can make, root neither."""
OK: Final = "ok"


class Arrayed:
    """What has `__array__` and nothing else."""

    def __init__(self, pixels: NDArray[np.uint8]) -> None:
        self.pixels = pixels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.pixels if dtype is None else self.pixels.astype(dtype)


def sample_pixels(size_px: int = 384) -> NDArray[np.uint8]:
    """A part of the H&E image that ships with the package."""
    pixels: NDArray[np.uint8] = tifffile.imread(SAMPLE)[:size_px, :size_px, :3]
    return np.ascontiguousarray(pixels)


def objects_of(pixels: NDArray[np.uint8], folder: Path) -> dict[str, Any]:
    """The same image as everything that people have images in."""
    path = folder / "image.png"
    Image.fromarray(pixels).save(path)
    opaque = np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])
    return {
        "path": str(path),
        "Path": path,
        "PIL": Image.fromarray(pixels),
        "PIL, RGBA": Image.fromarray(opaque),
        "uint8": pixels,
        "float32 in 0 … 1": pixels.astype(np.float32) / 255,
        "float64": pixels / 255,
        "RGBA": opaque,
        "channels first": pixels.transpose(2, 0, 1),
        "torch, uint8": torch.from_numpy(pixels),
        "torch, float": torch.from_numpy(pixels).permute(2, 0, 1).float() / 255,
        "torch, batch of one": torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255,
        "__array__": Arrayed(pixels),
        "grey": np.asarray(Image.fromarray(pixels).convert("L")),
        "PIL, grey": Image.fromarray(pixels).convert("L"),
    }


def overlap(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """IoU of the foreground."""
    return float(((found == 1) & (expected == 1)).sum() / max(((found == 1) | (expected == 1)).sum(), 1))


def tried(action: Callable[[], str]) -> str:
    """What a trial says, or the first line of its error."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


def object_rows(folder: Path) -> dict[str, dict[str, str]]:
    """Each object by each part of the interface; labels must be those of the uint8 array, or of the grey one."""
    objects = objects_of(sample_pixels(), folder)
    rows = {}
    for name, image in objects.items():
        like = "grey" if "grey" in name else "uint8"
        expected = seunet.segment(objects[like], mpp=0.25).labels

        def labels(image: Any = image, expected: Any = expected) -> str:
            shared = overlap(seunet.segment(image, mpp=0.25).labels, expected)
            return OK if shared >= 0.999 else f"IoU {shared:.4f}"

        def given_out(image: Any = image, name: str = name) -> str:
            found = seunet.segment(image, mpp=0.25)
            found.save(folder / f"saved-{name.replace(' ', '')}")
            parts = len(found.objects), len(found.to_geojson()["features"]), np.asarray(found.overlay()).ndim
            return OK if parts[0] == parts[1] > 0 and parts[2] == 3 else str(parts)

        def scale(image: Any = image) -> str:
            return OK if seunet.segment(image).labels.ndim == 2 else "no labels"

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


def conditions(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """What a command is begun with, and in which environment."""
    locked = folder / "read-only-home"
    locked.mkdir()
    locked.chmod(0o555)
    only_reads = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # Folders of the interpreter may be closed to others; reading is granted, writing is not.
    only_reads += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return {
        "as it is": ([], {}),
        "no home": ([], {"HOME": NOWHERE}),
        "read-only home": ([], {"HOME": str(locked)}),
        "NUMBA_CACHE_DIR that cannot be written": ([], {"NUMBA_CACHE_DIR": f"{NOWHERE}/cache"}),
        "another user, who owns nothing": (only_reads, {"HOME": NOWHERE}),
    }


def python_rows(folder: Path, environments: Path | None) -> dict[str, dict[str, str]]:
    """Each Python by each condition: `seunet segment` of one image, exit 0 and at most one line of warning."""
    pythons = {"{}.{}".format(*sys.version_info): sys.executable}
    for version in OTHER_PYTHONS if environments else ():
        python = environments / f"python{version}" / "venv" / "bin" / "python"  # type: ignore[operator]
        if python.exists():
            pythons[f"{version}, from the wheel"] = str(python)
    image = folder / "small.png"
    Image.fromarray(sample_pixels(128)).save(image)
    image.chmod(0o644)
    folder.chmod(0o755)
    started = conditions(folder)
    rows = {
        name: {title: tried(lambda: in_process(python, image, *how)) for title, how in started.items()}  # noqa: B023
        for name, python in pythons.items()
    }
    for version in OTHER_PYTHONS:
        if not any(name.startswith(version) for name in rows):
            rows[version] = dict.fromkeys(started, why_not(version))
    return dict(sorted(rows.items()))


def why_not(version: str) -> str:
    if version == "3.14":
        return "not tried: requires-python is < 3.14, and it is not on this machine"
    return "not tried: no environment with the wheel was given"


def in_process(python: str, image: Path, before: list[str], environment: dict[str, str]) -> str:
    """Segment as a user of that kind; what they see."""
    if before and (os.geteuid() != 0 or shutil.which(before[0]) is None):
        return "not tried: needs root and setpriv"
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o777)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NUMBA"))}
        if python != sys.executable:
            kept.pop("PYTHONPATH", None)
        asked = [*before, python, "-m", "seunet", "segment", str(image), "-o", "out", "--mpp", "0.25", "--no-progress"]
        ran = subprocess.run(
            asked,
            cwd=scratch,
            env=kept | {"TMPDIR": scratch} | environment,
            capture_output=True,
            text=True,
            timeout=1200,
        )
        done = (Path(scratch) / "out" / "small" / "objects.geojson").is_file()
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("note: licence")]
    if ran.returncode or not done:
        return f"exit {ran.returncode}: {(lines or ['nothing written'])[-1][:100]}"
    return OK if len(lines) <= 1 else f"{len(lines)} lines of warning: {lines[0][:80]}"


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
