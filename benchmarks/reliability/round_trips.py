"""Every export, run by the program it is for: how far its labels are ours, on the demo image at three sizes.

    python -m benchmarks.reliability.round_trips

`seunet export nuclei --to …`, then the files alone; each image is taken as one of the model's µm per pixel.
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
from seunet.export import choose, write_export

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
    module = torch.jit.load(file)
    return lambda images: module(torch.from_numpy(images))[0].argmax(0).numpy()


def by_qupath(file: Path) -> Labels:
    """As the InstanSeg extension calls it, the image being the annotation."""
    module = torch.jit.load(file)

    def labels(images: NDArray[np.float32]) -> NDArray[Any]:
        low, high = np.percentile(images, PERCENTILES, axis=(0, 2, 3), keepdims=True)
        tile = np.clip((images - low) / (high - low + 1e-6), -0.5, 1.5).astype(np.float32)
        return np.asarray(module(torch.from_numpy(tile))[0, 0].numpy() > 0).astype(np.uint8)

    return labels


TARGETS: Final = {
    "onnx": (by_onnx, "model.onnx"),
    "openvino": (by_openvino, "model.xml"),
    "torchscript": (by_torchscript, "model.pt"),
    "bioimageio": (by_torchscript, "weights.pt"),
    "qupath": (by_qupath, "instanseg.pt"),
}


def demo_images() -> dict[int, NDArray[np.uint8]]:
    """The demo image by its side in pixels."""
    whole = Image.fromarray(sample_pixels(512))
    sides = [round(512 * factor) for factor in DEMO_SIZES]
    return {side: np.array(whole.resize((side, side), Image.Resampling.LANCZOS)) for side in sides}


def main() -> int:
    """Exit 1 if labels differ by more than they may; QuPath is given other pixels, and its figures are only told."""
    BENCHMARK.parser(__doc__).parse_args()
    torch.set_num_threads(1)
    mpp = seunet.load("nuclei").card.mpp  # type: ignore[union-attr]
    expected = {side: (image, seunet.segment(image, mpp=mpp).labels) for side, image in demo_images().items()}
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for target, (by, file) in TARGETS.items():
            write_export(choose("nuclei"), Path(name) / target, target)
            labels = by(Path(name) / target / file)
            rows[target] = {}
            for side, (image, ours) in expected.items():
                found = labels(np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / 255)
                rows[target][str(side)] = round(overlap(found, ours), 5)
    print(write_results(BENCHMARK, {"iou": rows}))
    return int(min(min(row.values()) for target, row in rows.items() if target != "qupath") < LEAST)


if __name__ == "__main__":
    sys.exit(main())
