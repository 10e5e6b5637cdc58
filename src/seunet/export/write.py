"""`seunet export`: a folder with the model in another program's form, compared with ours before it is there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

import seunet
from seunet.errors import InputError, StorageError, check_known
from seunet.export.choice import Chosen
from seunet.export.onnx_graph import PROBABILITIES, onnx_model
from seunet.export.onnx_operators import OPSET
from seunet.export.runtimes import BLOCK, by_onnx, by_openvino
from seunet.extras import needed
from seunet.maths.fusion import fuse
from seunet.storage.output_folder import names_in, something_else

FACTS_NAME: Final = "export.json"
SIZES: Final = ((37, 50), (64, 33), (15, 81))
"""At which an export is compared with the network: odd, even, and smaller than its stride."""
TOLERANCE: Final = 1e-4
"""Of a probability."""

Predict = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def write_export(chosen: Chosen, out: Path, to: str, opset: int = OPSET) -> dict[str, Any]:
    """Write `chosen` into the new folder `out` and say what is in it (export.json)."""
    check_known("target", to, _WRITERS)
    if names := names_in(out, "the export"):
        raise something_else(out, names[0], "choose another folder")
    with _new_folder(out) as part:
        facts = {"seunet": seunet.__version__, "to": to, **chosen.facts(), **_WRITERS[to](chosen, part, opset)}
        (part / FACTS_NAME).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return facts


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder that appears under its name when it is whole, or not at all."""
    part = out.parent / f".{out.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        if out.is_dir():
            out.rmdir()
        os.replace(part, out)
    except OSError as error:
        raise StorageError(
            f"{out}: cannot be written ({error.strerror}); free space or choose another place"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def native_probabilities(chosen: Chosen, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """What our own kernels say: [B, classes, H, W]."""
    with torch.inference_mode():
        heads = chosen.model(torch.from_numpy(images))[:, list(chosen.heads)].softmax(2)
        return fuse(heads, chosen.fusion).numpy()


def checked(chosen: Chosen, predict: Predict) -> dict[str, Any]:
    """The largest difference of a probability from ours; an error where it is more than rounding."""
    random = np.random.default_rng(0)
    worst = 0.0
    for height, width in SIZES:
        images = random.random((1, chosen.model.in_channels, height, width), dtype=np.float32)
        worst = max(worst, float(np.abs(predict(images) - native_probabilities(chosen, images)).max()))
    if not worst <= TOLERANCE:
        raise InputError(f"the export differs from the model by {worst:.2g} in probability; nothing is written")
    return {"largest_difference": worst, "compared_at": [list(size) for size in SIZES]}


def _onnx(chosen: Chosen, folder: Path, opset: int) -> dict[str, Any]:
    graph = onnx_model(chosen.network(BLOCK), _properties(chosen), opset)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    return {"file": "model.onnx", "opset": opset, **checked(chosen, by_onnx(graph, 1, PROBABILITIES))}


def _openvino(chosen: Chosen, folder: Path, opset: int) -> dict[str, Any]:
    needed("openvino")
    import openvino

    graph = onnx_model(chosen.network(BLOCK), _properties(chosen), opset)
    model = openvino.Core().read_model(graph.SerializeToString())
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
    hint = "compile with INFERENCE_PRECISION_HINT f32: the default of some processors is half precision"
    return {"file": "model.xml", "precision": hint, **checked(chosen, by_openvino(graph, 1, PROBABILITIES))}


def _torchscript(chosen: Chosen, folder: Path, _: int) -> dict[str, Any]:
    scripted = script_of(chosen.network())
    torch.jit.save(scripted, folder / "model.pt")
    return {"file": "model.pt", **checked(chosen, lambda images: scripted(torch.from_numpy(images)).numpy())}


def script_of(module: torch.nn.Module) -> Any:
    """`module` in TorchScript, frozen."""
    import warnings

    with warnings.catch_warnings():
        # Newer torch asks to use torch.export; programs in Java and ImageJ read TorchScript alone.
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.freeze(torch.jit.script(module.eval()))


def _properties(chosen: Chosen) -> dict[str, str]:
    return {f"seunet.{name}": json.dumps(value) for name, value in chosen.facts().items()}


def _bioimageio(chosen: Chosen, folder: Path, _: int) -> dict[str, Any]:
    from seunet.export.bioimageio import write_package

    return write_package(chosen, folder)


def _qupath(chosen: Chosen, folder: Path, _: int) -> dict[str, Any]:
    from seunet.export.qupath import write_qupath

    return write_qupath(chosen, folder)


_WRITERS: Final[dict[str, Callable[[Chosen, Path, int], dict[str, Any]]]] = {
    "onnx": _onnx,
    "torchscript": _torchscript,
    "openvino": _openvino,
    "bioimageio": _bioimageio,
    "qupath": _qupath,
}
TARGETS: Final = tuple(_WRITERS)
