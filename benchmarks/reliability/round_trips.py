"""Every export, run from its files alone: how far its labels are ours, on the demo image at three sizes.

    python -m benchmarks.reliability.round_trips

`seunet export nuclei --to …`, then ONNX Runtime, OpenVINO or torch; each image is taken as one of the model's µm per
pixel.  What is for bioimage.io and QuPath is run by torch, with pixels as those programs give them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
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
from seunet.export import TYPICAL_HIGH, TYPICAL_LOW, choose, write_export

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


def by_qupath(file: Path, typical: bool = False) -> Labels:
    """As the InstanSeg extension calls it, the image being the annotation.

    Args:
        typical: the image has the percentiles that the model takes for granted, as it cannot be told those it has.
    """
    module: Any = torch.jit.load(file)  # type: ignore[no-untyped-call]

    def labels(images: NDArray[np.float32]) -> NDArray[Any]:
        low, high = np.percentile(images, PERCENTILES, axis=(0, 2, 3), keepdims=True)
        if typical:
            low, high = (np.reshape(values, low.shape) for values in (TYPICAL_LOW, TYPICAL_HIGH))
        tile = np.clip((images - low) / (high - low + 1e-6), -0.5, 1.5).astype(np.float32)
        return np.asarray(module(torch.from_numpy(tile))[0, 0].numpy() > 0).astype(np.uint8)

    return labels


EXPORTS: Final[dict[str, tuple[str, str, Callable[[Path], Labels]]]] = {
    "ONNX": ("onnx", "model.onnx", by_onnx),
    "OpenVINO": ("openvino", "model.xml", by_openvino),
    "TorchScript": ("torchscript", "model.pt", by_torchscript),
    "bioimage.io": ("bioimageio", "weights.pt", by_torchscript),
    "QuPath, an image with typical percentiles": ("qupath", "instanseg.pt", partial(by_qupath, typical=True)),
    "QuPath, the image by its own": ("qupath", "instanseg.pt", by_qupath),
}
"""What is exported, which of its files is run, and by whom."""


def demo_images() -> dict[int, NDArray[np.uint8]]:
    """The demo image by its side in pixels."""
    whole = Image.fromarray(sample_pixels(512))
    sides = [round(512 * factor) for factor in DEMO_SIZES]
    return {side: np.array(whole.resize((side, side), Image.Resampling.LANCZOS)) for side in sides}


def main() -> int:
    """Exit 1 if labels differ by more than they may; QuPath sees other pixels and leaves out specks: only told."""
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
    print(write_results(BENCHMARK, {"iou": rows}))
    return int(min(min(row.values()) for title, row in rows.items() if "QuPath" not in title) < LEAST)


def _as_floats(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


if __name__ == "__main__":
    sys.exit(main())
