"""A head run by ONNX Runtime or OpenVINO in place of our own kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import check_known
from seunet.export.onnx_graph import IMAGES, LOGITS, onnx_model
from seunet.export.portable import PortableNetwork, portable_network
from seunet.extras import needed
from seunet.models.unet_skeleton import ScaleUNet

if TYPE_CHECKING:
    from onnx import ModelProto

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""RGB in 0 … 1 [B, 3, H, W] → logits [B, heads, classes, H, W]."""

RUNTIMES: Final = ("native", "onnx", "openvino")

BLOCK: Final = 8
"""Channels that both runtimes work on at a time; filled up to these, graphs run faster."""

EXACT: Final = {"INFERENCE_PRECISION_HINT": "f32"}
"""OpenVINO's default may compute in half precision, which moves logits by 0.08."""


def run_by(runtime: str, model: ScaleUNet, threads: int) -> Run:
    """All heads of `model` by that runtime."""
    check_known("runtime", runtime, RUNTIMES[1:])
    network = portable_network(model, multiple=BLOCK)
    if runtime == "onnx":
        return by_onnx_for_each_size(network, threads)
    return by_openvino(onnx_model(network, {}, outputs=(LOGITS,)), threads)


def by_onnx_for_each_size(network: PortableNetwork, threads: int) -> Run:
    """ONNX Runtime with a graph for each size of images, which is faster: nothing is cut or joined at run time.

    A session takes hundredths of a second to make.  Every size has one, so that a result does not depend on what came
    before; two are kept, for the tiles of a row and the one at its end.
    """

    @lru_cache(maxsize=2)
    def session_for(batch: int, height: int, width: int) -> Run:
        graph = onnx_model(network, {}, outputs=(LOGITS,), size=(height, width))
        return by_onnx(graph, threads, sizes=(("batch", batch),))

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        batch, _, height, width = images.shape
        return session_for(batch, height, width)(images)

    return run


def by_onnx(graph: ModelProto, threads: int, output: str = LOGITS, sizes: tuple[tuple[str, int], ...] = ()) -> Run:
    """ONNX Runtime on the CPU; `sizes` of its axes, where they are known."""
    needed("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    for axis, size in sizes:
        options.add_free_dimension_override_by_name(axis, size)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return session.run([output], {IMAGES: images})[0]  # type: ignore[no-any-return]

    return run


def by_openvino(graph: ModelProto, threads: int, output: str = LOGITS) -> Run:
    """OpenVINO on the CPU, in float32."""
    needed("openvino")
    import openvino

    core = openvino.Core()
    compiled: Any = core.compile_model(
        core.read_model(graph.SerializeToString()), "CPU", EXACT | {"INFERENCE_NUM_THREADS": threads}
    )

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.array(compiled(np.ascontiguousarray(images))[output])

    return run
