"""Every export, run from its files alone: how far its labels are ours, on the demo image at three sizes.

    python -m benchmarks.reliability.round_trips

`seunet export nuclei --to …`, then ONNX Runtime, OpenVINO or torch; each image is taken as one of the model's µm per
pixel.  What is for bioimage.io and QuPath is run by torch, with pixels as those programs give them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from benchmarks.reliability.conditions import sample_pixels
from benchmarks.reliability.matrix import DEMO_SIZES, overlap
from seunet.export import OriginalPixels, choose, write_export
from seunet.results import ArrayPlane, objects

BENCHMARK = Benchmark("reliability.round_trips", ("results/benchmarks/round_trips.json",), 2)
Labels = Callable[[NDArray[np.float32]], NDArray[Any]]
"""RGB in 0 … 1 [1, 3, H, W] → the class of each pixel."""
LEAST: Final = 0.999
PERCENTILES: Final = (0.1, 99.9)
"""Of each channel: QuPath's extension brings them to 0 and 1."""


def by_onnx(file: Path) -> Labels:
    import onnxruntime

    session = onnxruntime.InferenceSession(file)
    return lambda images: session.run(["probabilities"], {"images": images})[0][0].argmax(0)


def by_openvino(file: Path) -> Labels:
    import openvino

    compiled = openvino.Core().compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda images: compiled(images)["probabilities"][0].argmax(0)


def by_torchscript(file: Path) -> Labels:
    module: Any = torch.jit.load(file)  # type: ignore[no-untyped-call]
    return lambda images: module(torch.from_numpy(images))[0].argmax(0).numpy()


def as_the_extension(image: NDArray[np.uint8]) -> torch.Tensor:
    """The image as QuPath's InstanSeg extension gives it, being the annotation: [1, 3, H, W]."""
    low, high = np.percentile(image, PERCENTILES, axis=(0, 1))
    tile = np.clip((image - low) / (high - low + 1e-6), -0.5, 1.5)
    return torch.from_numpy(np.ascontiguousarray(tile.transpose(2, 0, 1)[None], np.float32))


def object_numbers(image: NDArray[np.uint8], mpp: float | None) -> NDArray[np.int32]:
    """The objects of `seunet segment`, numbered from 1."""
    found = seunet.segment(image, mpp=mpp)
    numbers = np.zeros(found.labels.shape, dtype=np.int32)
    every = objects(ArrayPlane(found.labels), found.frame, min_area_px=found.min_area_px)
    for number, one in enumerate(every, start=1):
        for row, start, end in one.runs.T.tolist():
            numbers[row, start:end] = number
    return numbers


def shared_objects(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """The share of the expected objects that are found pixel by pixel."""
    pairs, areas = np.unique(np.stack([found, expected]).reshape(2, -1), axis=1, return_counts=True)
    whole = [np.bincount(one.ravel()) for one in (found, expected)]
    same = [area == whole[0][a] == whole[1][b] for (a, b), area in zip(pairs.T, areas, strict=True) if a and b]
    return float(sum(same) / max(int(expected.max()), 1))


def qupath_rows(file: Path, mpp: float | None) -> dict[str, dict[str, dict[str, float]]]:
    """Objects against ours: of the pixels that the model makes of what it is given, and of the image itself."""
    module: Any = torch.jit.load(file)  # type: ignore[no-untyped-call]
    rows: dict[str, dict[str, dict[str, float]]] = {title: {} for title in QUPATH}
    for side, image in demo_images().items():
        tile = as_the_extension(image)
        found = module(tile)[0, 0].numpy().astype(np.int64)
        seen = (OriginalPixels()(tile)[0].permute(1, 2, 0) * 255).round().byte().numpy()
        for title, pixels in zip(QUPATH, (seen, image), strict=True):
            ours = object_numbers(pixels, mpp)
            rows[title][str(side)] = {
                "iou": round(overlap(found > 0, ours > 0), 4),
                "same_objects": round(shared_objects(found, ours), 4),
            }
    return rows


EXPORTS: Final[dict[str, tuple[str, str, Callable[[Path], Labels]]]] = {
    "ONNX": ("onnx", "model.onnx", by_onnx),
    "OpenVINO": ("openvino", "model.xml", by_openvino),
    "TorchScript": ("torchscript", "model.pt", by_torchscript),
    "bioimage.io": ("bioimageio", "weights.pt", by_torchscript),
}
"""What is exported, which of its files is run, and by whom."""
QUPATH: Final = ("QuPath, on the pixels that it reconstructs", "QuPath, on the image itself")


def demo_images() -> dict[int, NDArray[np.uint8]]:
    """The demo image by its side in pixels."""
    whole = Image.fromarray(sample_pixels(512))
    sides = [round(512 * factor) for factor in DEMO_SIZES]
    return {side: np.array(whole.resize((side, side), Image.Resampling.LANCZOS)) for side in sides}


def main() -> int:
    """Exit 1 if labels of the same pixels differ by more than they may."""
    BENCHMARK.parser(__doc__).parse_args()
    torch.set_num_threads(1)
    mpp = seunet.load("nuclei").card.mpp  # type: ignore[union-attr]
    expected = {side: (image, seunet.segment(image, mpp=mpp).labels) for side, image in demo_images().items()}
    rows: dict[str, dict[str, float]] = {}
    for title, (target, file, by) in EXPORTS.items():
        with tempfile.TemporaryDirectory() as name:
            write_export(choose("nuclei"), Path(name) / target, target)
            labels = by(Path(name) / target / file)
            found = {side: labels(_as_floats(image)) for side, (image, _) in expected.items()}
        rows[title] = {str(side): round(overlap(found[side], ours), 4) for side, (_, ours) in expected.items()}
    with tempfile.TemporaryDirectory() as name:
        write_export(choose("nuclei"), Path(name) / "qupath", "qupath")
        in_qupath = qupath_rows(Path(name) / "qupath" / "instanseg.pt", mpp)
    print(write_results(BENCHMARK, {"iou": rows, "qupath": in_qupath}))
    same_pixels = [*rows.values(), {side: row["iou"] for side, row in in_qupath[QUPATH[0]].items()}]
    return int(min(min(row.values()) for row in same_pixels) < LEAST)


def _as_floats(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


if __name__ == "__main__":
    sys.exit(main())
