"""A head run by ONNX Runtime or OpenVINO in place of our own kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.errors import check_known
from seunet.export.onnx_bands import Fill, Maps, level_in_bands
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
    if runtime == "onnx":
        return by_onnx_for_each_size(portable_network(model, multiple=onnx_block()), threads)
    return by_openvino(onnx_model(portable_network(model, multiple=BLOCK), {}, outputs=(LOGITS,)), threads)


def onnx_block() -> int:
    """Channels that ONNX Runtime works on at a time on this processor: it pools no others in its own layout."""
    return 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else BLOCK


def by_onnx_for_each_size(network: PortableNetwork, threads: int) -> Run:
    """ONNX Runtime with graphs for each size of images, large ones in bands: see `onnx_bands`.

    Sessions of a size take hundredths of a second to make.  Every size has its own, so that a result does not depend
    on what came before; those of two are kept, for the tiles of a row and the one at its end.
    """
    classes = network.heads[0].head.out_channels  # type: ignore[union-attr]

    @lru_cache(maxsize=2)
    def heads_for(height: int, width: int) -> list[Fill]:
        return [level_in_bands(head, 0, (height, width), partial(filling, threads=threads)) for head in network.heads]  # type: ignore[arg-type]

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        batch, _, *size = images.shape
        found = np.empty((batch, len(network.heads), *size, classes), np.float32)
        for number, image in enumerate(np.ascontiguousarray(images, np.float32)):
            for place, head in enumerate(heads_for(*size)):
                head([image[None]], [found[number, place][None]])
        return np.moveaxis(found, -1, 2)

    return run


def filling(graph: ModelProto, threads: int) -> Fill:
    """A session of ONNX Runtime that reads and writes arrays where they lie."""
    needed("onnxruntime")
    _share_memory()
    session = _session(graph, threads, {"session.use_env_allocators": "1"})
    read, written = ([one.name for one in some] for some in (session.get_inputs(), session.get_outputs()))

    def fill(given: list[Maps], found: list[Maps]) -> None:
        binding = session.io_binding()
        for name, maps in zip(read, given, strict=True):
            binding.bind_input(name, "cpu", 0, np.float32, maps.shape, maps.ctypes.data)
        for name, maps in zip(written, found, strict=True):
            binding.bind_output(name, "cpu", 0, np.float32, maps.shape, maps.ctypes.data)
        session.run_with_iobinding(binding)

    return fill


@cache
def _share_memory() -> None:
    """One arena for all sessions that ask for it: theirs run in turn, and the next finds it in the cache."""
    import onnxruntime

    where = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(where, None)


def by_onnx(graph: ModelProto, threads: int, output: str = LOGITS) -> Run:
    """ONNX Runtime on the CPU."""
    needed("onnxruntime")
    session = _session(graph, threads, {})

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return session.run([output], {IMAGES: images})[0]  # type: ignore[no-any-return]

    return run


def _session(graph: ModelProto, threads: int, entries: dict[str, str]) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # A session has threads of its own; those of the many sessions of a head would wait in turn at full speed.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


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
