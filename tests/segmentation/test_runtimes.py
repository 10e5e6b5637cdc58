"""`seunet segment --runtime`: another program computes, everything else is the same."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage.data import immunohistochemistry
from typer.testing import CliRunner

from seunet.cli import app

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxruntime", "openvino"))), reason="pip install 'seunet[export]'"
)


def labels(image: Path, out: Path, runtime: str) -> np.ndarray:
    done = CliRunner().invoke(app, ["segment", str(image), "-o", str(out), "--runtime", runtime, "--mpp", "0.25"])
    assert done.exit_code == 0, done.output
    found = tifffile.imread(out / image.stem / "labels.tif")
    names = {path.name for path in (out / image.stem).iterdir()}
    assert {"objects.geojson", "counts.csv", "labels.tif", "overlay.png", "run.json"} <= names
    return np.asarray(found)


@pytest.mark.parametrize("size", [(301, 257), (160, 333), (90, 64)])
def test_the_labels_of_every_runtime_are_those_of_our_own_kernels(size: tuple[int, int], tmp_path: Path) -> None:
    image = tmp_path / "tissue.png"
    Image.fromarray(immunohistochemistry()[: size[0], : size[1]]).save(image)
    expected = labels(image, tmp_path / "native", "native")
    for runtime in ("onnx", "openvino"):
        found = labels(image, tmp_path / runtime, runtime)
        both, either = ((found == 1) & (expected == 1)).sum(), ((found == 1) | (expected == 1)).sum()
        assert both >= 0.999 * either > 0
        run = json.loads((tmp_path / runtime / "tissue" / "run.json").read_text())
        assert run["choices"]["runtime"] == runtime
    assert "runtime" not in json.loads((tmp_path / "native" / "tissue" / "run.json").read_text())["choices"]


def test_an_unknown_runtime_is_refused(tmp_path: Path) -> None:
    Image.fromarray(immunohistochemistry()[:64, :64]).save(tmp_path / "tissue.png")
    done = CliRunner().invoke(app, ["segment", str(tmp_path / "tissue.png"), "-o", "out", "--runtime", "cuda"])
    assert "--runtime cuda: " in str(done.exception)
