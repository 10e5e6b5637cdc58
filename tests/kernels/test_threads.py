"""Threads: any number of them, from any Python thread, after a fork; the result is the same to the bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seunet.kernels import threads as team
from seunet.kernels.compiling.workers import COMPILED_FILES, KERNELS, source_digest
from seunet.layers import GaussianConv2d


def forward_and_backward(layer: GaussianConv2d, image: Tensor) -> list[Tensor]:
    image = image.clone().requires_grad_()
    output = layer(image)
    assert layer.sigma_position is not None
    return [output, *torch.autograd.grad(output.square().sum(), [image, layer.coefficients, layer.sigma_position])]


def small_case() -> tuple[GaussianConv2d, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return GaussianConv2d(20, 20), torch.randn(2, 5, 4, 70, 41, generator=generator)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    layer, image = small_case()
    torch.set_num_threads(1)
    expected = forward_and_backward(layer, image)
    torch.set_num_threads(threads)
    for ours, theirs in zip(forward_and_backward(layer, image), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_several_python_threads_at_once_give_the_same_bits() -> None:
    layer, image = small_case()
    expected = forward_and_backward(layer, image)
    results: list[list[Tensor]] = []

    def work() -> None:
        for _ in range(5):
            results.append(forward_and_backward(layer, image))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert all(torch.equal(a, b) for result in results for a, b in zip(result, expected, strict=True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes_the_same_bits() -> None:
    layer, image = small_case()
    expected = forward_and_backward(layer, image)  # the parent's team exists before the fork
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for threads it does not have is killed and fails the test
        same = all(torch.equal(a, b) for a, b in zip(forward_and_backward(layer, image), expected, strict=True))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_without_an_openmp_runtime_the_pool_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, image = small_case()
    expected = forward_and_backward(layer, image)
    monkeypatch.setattr(team, "_openmp_parallel", lambda: None)
    for ours, theirs in zip(forward_and_backward(layer, image), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_what_is_kept_on_disk_follows_every_file_of_the_loops(tmp_path: Path) -> None:
    for room in ("compiling", "loops", "vectors"):
        (tmp_path / room).mkdir()
    for name in COMPILED_FILES:
        (tmp_path / name).write_bytes((KERNELS / name).read_bytes())
    before = source_digest(tmp_path)
    assert before == source_digest()
    for name in COMPILED_FILES:
        original = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(original + b"\n")
        assert source_digest(tmp_path) != before, name
        (tmp_path / name).write_bytes(original)
    loops = [*KERNELS.glob("loops/[!_]*.py"), *KERNELS.glob("vectors/[!_]*.py")]
    assert {path.relative_to(KERNELS).as_posix() for path in loops} <= {*COMPILED_FILES}


def test_compiled_code_is_cached_on_disk(tmp_path: Path) -> None:
    """A second process reads what the first one compiled, and compiles nothing."""
    program = (
        "import torch; from seunet.layers import GaussianConv2d\n"
        "with torch.no_grad(): GaussianConv2d(3, 5, lifting=True)(torch.zeros(1, 3, 8, 8))\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=600)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert any("jet_loops" in path.name for path in files)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=600)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files


def test_where_no_folder_can_be_written_the_loops_are_compiled_in_memory() -> None:
    program = (
        "import torch; from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from seunet.layers import GaussianConv2d\n"
        "with torch.no_grad(): print(GaussianConv2d(3, 5, lifting=True)(torch.zeros(1, 3, 8, 8)).shape[1])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert result.stdout == "5\n", result.stderr
