"""Exports: what another program computes with them is what we compute; what has no such form is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from typer.testing import CliRunner

import seunet
from seunet.cli import app
from seunet.errors import InputError
from seunet.export import choose, onnx_model, portable_network, run_by, write_export
from seunet.models import ModelCard, ScaleUNet
from tests.support.networks import calm_model, picture

needs_runtimes = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxruntime", "openvino"))), reason="pip install 'seunet[export]'"
)
SIZES = [(37, 50), (64, 33), (15, 81), (1, 5), (7, 7), (16, 16), (17, 31), (48, 49), (95, 3), (33, 66)]
MODELS = [
    ("seunet", {}),
    ("seunet", {"pooling": "average", "order": 2}),
    ("seunet", {"pooling": "none", "classes": 1}),
    ("njet", {}),
    ("unet", {}),
]


def images(height: int, width: int, batch: int = 1) -> NDArray[np.float32]:
    return np.stack([picture(height, width, seed).transpose(2, 0, 1) for seed in range(batch)]).astype(np.float32) / 255


def logits(model: ScaleUNet, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.inference_mode():
        found: NDArray[np.float32] = model(torch.from_numpy(pixels)).numpy()
    return found


@pytest.fixture(scope="module")
def model() -> ScaleUNet:
    made = calm_model(widths=(10, 20, 40), classes=3)
    made.card = ModelCard(mpp=0.25, class_names=("background", "a", "b"), matched_head=2)
    return made


@needs_runtimes
@pytest.mark.parametrize("runtime", ["onnx", "openvino"])
@pytest.mark.parametrize(("name", "options"), MODELS)
def test_a_runtime_gives_our_logits_at_ten_odd_sizes(name: str, options: dict[str, Any], runtime: str) -> None:
    from seunet.export.runtimes import by_onnx

    model = calm_model(name, **{"widths": (10, 20), "classes": 3} | options)
    runs = [run_by(runtime, model, threads=1)]
    if runtime == "onnx":  # told the size, and as it is exported
        runs.append(by_onnx(onnx_model(portable_network(model, multiple=8), {}), 1))
    for pixels in [*(images(*size) for size in SIZES), images(20, 21, 2)]:
        expected = logits(model, pixels)
        for run in runs:
            assert np.abs(run(pixels) - expected).max() < 1e-4


@needs_runtimes
@pytest.mark.parametrize(("name", "options"), MODELS)
def test_bands_of_rows_give_the_logits_of_the_whole(name: str, options: dict[str, Any]) -> None:
    from seunet.export.onnx_bands import level_in_bands
    from seunet.export.runtimes import filling

    model = calm_model(name, **{"widths": (10, 20, 40), "classes": 3} | options)
    head: Any = portable_network(model, multiple=16).heads[0]
    sessions: list[int] = []

    def start(graph: Any) -> Any:
        sessions.append(len(graph.graph.node))
        return filling(graph, 1)

    for height, width in [(211, 34), (333, 19), (140, 3)]:
        sessions.clear()
        pixels = images(height, width)
        found = np.empty((1, height, width, head.head.out_channels), np.float32)
        level_in_bands(head, 0, (height, width), start, band_bytes=1)([pixels], [found])
        assert np.abs(np.moveaxis(found, -1, 1) - logits(model, pixels)[:, 0]).max() < 1e-4
        # Down and up, the first band, the last and those between: what is not pooled is computed at once.
        assert len(sessions) == 1 if head.pooling == "none" else len(sessions) > 4


@pytest.mark.parametrize(("height", "rows"), [(1, 4), (511, 128), (1024, 64), (37, 5)])
def test_bands_follow_each_other_and_begin_at_even_rows(height: int, rows: int) -> None:
    from seunet.export.onnx_bands import bands

    parts = bands(height, rows)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == height
    assert all(part.start % 2 == 0 for part in parts)
    assert all(abs(part.stop - part.start - rows) <= rows / 2 + 2 for part in parts) or len(parts) == 1


@needs_runtimes
@pytest.mark.parametrize("fusion", ["mean", "p_dist", "p_ens"])
def test_the_fusion_is_in_the_graph(fusion: str, model: ScaleUNet) -> None:
    from seunet.export.onnx_graph import PROBABILITIES
    from seunet.export.runtimes import by_onnx, by_openvino

    pixels = images(33, 47)
    expected = seunet.fuse(torch.from_numpy(logits(model, pixels)).softmax(2), fusion).numpy()
    network = portable_network(model, fusion=fusion, multiple=8)
    graph = onnx_model(network, {})
    ways: list[Callable[..., Any]] = [by_onnx(graph, 1, PROBABILITIES), by_openvino(graph, 1, PROBABILITIES)]
    for way in [*ways, lambda given: network(torch.from_numpy(given)).numpy()]:
        assert np.abs(way(pixels) - expected).max() < 1e-4


@needs_runtimes
def test_every_filter_of_the_graph_is_one_dimensional_and_for_one_channel(model: ScaleUNet) -> None:
    graph = onnx_model(portable_network(model, multiple=8), {}).graph
    shapes = {one.name: tuple(one.dims) for one in graph.initializer}
    kernels = [shapes[node.input[1]] for node in graph.node if node.op_type == "Conv"]
    assert all(1 in kernel[2:] for kernel in kernels)
    filters = [kernel for kernel in kernels if kernel[2:] != (1, 1)]
    assert len(filters) > 50
    # The first layer of each head mixes its three colours by the filters themselves.
    assert {kernel[1] for kernel in filters} == {1, 3}
    assert sum(kernel[1] == 3 for kernel in filters) == 2 * model.heads


@needs_runtimes
@pytest.mark.parametrize("to", ["onnx", "openvino", "torchscript"])
def test_the_files_run_elsewhere(to: str, model: ScaleUNet, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "mine")
    done = CliRunner().invoke(
        app, ["export", str(tmp_path / "mine"), "-o", str(tmp_path / "out"), "--to", to, "--scale", "1.25"]
    )
    assert done.exit_code == 0, done.output
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (facts["heads"], facts["sigma_factor"], facts["mpp"]) == ([2], 1.25, 0.2)
    pixels = images(41, 70)
    expected = torch.from_numpy(logits(model.at_scale(1.25), pixels))[:, 1].softmax(1).numpy()  # type: ignore[operator]
    file = tmp_path / "out" / facts["file"]
    if to == "onnx":
        import onnxruntime

        found = onnxruntime.InferenceSession(file).run(["probabilities"], {"images": pixels})[0]
    elif to == "openvino":
        import openvino

        core = openvino.Core()
        found = core.compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(pixels)["probabilities"]
    else:
        found = torch.jit.load(file)(torch.from_numpy(pixels)).numpy()
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("sesn", {}, "sesn has no portable form: its scales meet in a maximum before the head"),
        ("disco", {"to": "torchscript"}, "disco has no portable form"),
        ("sesn", {"to": "qupath"}, "sesn has no portable form"),
        ("seunet", {"opset": 9}, r"opset 9 is not among those that are written \(13 to 21\)"),
        ("seunet", {"to": "onxx"}, "unknown target 'onxx'; did you mean 'onnx'"),
        ("seunet", {"head": "6"}, "--head 6: must be auto, matched, all or a number from 1 to 5"),
        ("seunet", {"head": "matched"}, "--head matched: the model's card names no matched head; give all, or 1 to 5"),
        ("unet", {"scale": 2.0}, "unet has no σ to be multiplied; leave out --scale"),
        ("seunet", {"scale": -1.0}, r"--scale -1: must be a positive number"),
    ],
)
def test_what_has_no_such_form_is_refused_in_one_line_and_leaves_nothing(
    name: str, arguments: dict[str, Any], line: str, tmp_path: Path
) -> None:
    calm_model(name, widths=(5, 5)).save_pretrained(tmp_path / "mine")
    chosen = {key: arguments[key] for key in ("scale", "head") if key in arguments}
    with pytest.raises(InputError, match=line) as caught:
        write_export(
            choose(tmp_path / "mine", **chosen),
            tmp_path / "out",
            arguments.get("to", "onnx"),
            arguments.get("opset", 17),
        )
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_scale_beyond_the_range_of_the_card_is_said_and_one_that_no_slide_has_is_refused() -> None:
    with pytest.warns(UserWarning, match=r"--scale 0\.5: only filters × 0\.92 to × 1\.8 .* to 0\.252 µm"):
        assert choose("nuclei", scale=0.5).mpp == pytest.approx(0.504)
    with pytest.raises(InputError, match=r"--scale 0\.01: is for 25.2 µm per pixel; must be from 0\.05 to 20"):
        choose("nuclei", scale=0.01)


def test_a_folder_that_holds_something_is_not_written_to(model: ScaleUNet, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"holds something else \(config\.json\); choose another folder"):
        write_export(choose(tmp_path), tmp_path, "torchscript")


def test_a_library_that_is_not_there_is_named_with_its_remedy(
    model: ScaleUNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save_pretrained(tmp_path / "mine")
    monkeypatch.setattr("seunet.extras.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"onnx is not installed; get it by: pip install onnx"):
        write_export(choose(tmp_path / "mine"), tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()


def test_an_export_that_computes_something_else_is_not_kept(
    model: ScaleUNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seunet.export import write

    model.save_pretrained(tmp_path / "mine")
    monkeypatch.setattr(write, "native_probabilities", lambda chosen, given: np.zeros((1, 3, *given.shape[2:])))
    with pytest.raises(InputError, match=r"the export differs from the model by .* nothing is written"):
        write_export(choose(tmp_path / "mine"), tmp_path / "out", "torchscript")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
