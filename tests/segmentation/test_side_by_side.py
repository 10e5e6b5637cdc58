"""Several inputs at once: the same files, and one that fails costs no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.errors import StorageError
from seunet.segmentation import Choices, Item
from seunet.segmentation import side_by_side as module
from seunet.segmentation.segment_many import Failure
from seunet.segmentation.side_by_side import IMAGES_PER_PROCESS, SMALL_BYTES, shared_out, side_by_side
from support.cli import seunet
from tests.support.tissue_model import discs

ANSWERING = """
import json, os, sys
for line in sys.stdin:
    task = json.loads(line)
    if task["name"] == "dies":
        os.kill(os.getpid(), 9)
    failed = {"kind": "Failure", "name": task["name"], "line": "out/full: no space", "exit_code": 3}
    done = {"kind": "FileResult", "name": task["name"], "state": "done", "lines": [], "row": {"pid": os.getpid()}}
    print(json.dumps(failed if task["name"] == "full" else done), flush=True)
"""


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """Processes that answer without doing anything; those that were started."""
    started: list[subprocess.Popen[str]] = []

    def start(threads: int) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([sys.executable, "-c", ANSWERING], stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    monkeypatch.setattr(module, "_started", start)
    return started


def items(*names: str) -> list[Item]:
    return [Item(Path(f"{name}.png"), None, name) for name in names]


def test_results_are_the_same_files_as_one_after_the_other(tmp_path: Path, disc_model: Path) -> None:
    generator = np.random.default_rng(3)
    for name in "abc":
        (tmp_path / "in").mkdir(exist_ok=True)
        Image.fromarray(discs(80, 96, generator)).save(tmp_path / "in" / f"{name}.png")
    for workers in (1, 2):
        ran = seunet("segment", tmp_path / "in", "-o", tmp_path / str(workers), "-m", disc_model, "--workers", workers)
        assert ran.code == 0, ran.err
        assert ran.out.splitlines()[-1] == "3 done"
    alone, beside = (
        {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
        for folder in (tmp_path / "1", tmp_path / "2")
    )
    assert alone.keys() == beside.keys()
    for name, path in alone.items():
        if name.name == "run.json":
            ours, theirs = (json.loads(each.read_text()) for each in (path, beside[name]))
            assert {**ours, "clock": 0} == {**theirs, "clock": 0}
        else:
            assert path.read_bytes() == beside[name].read_bytes(), name


def test_a_process_that_dies_costs_its_image_and_is_replaced(
    tmp_path: Path, answering: list[subprocess.Popen[str]]
) -> None:
    found = {one.name: one for one in side_by_side(items("a", "dies", "b", "c"), tmp_path, Choices(), 1)}
    assert [name for name, one in found.items() if not isinstance(one, Failure)] == ["a", "b", "c"]
    assert found["dies"] == Failure(
        "dies",
        "dies.png: its process ended (signal 9), for want of memory perhaps; repeat the command with --workers 1",
        4,
    )
    assert len(answering) == 2


def test_a_full_disk_ends_everything_and_no_process_is_left(
    tmp_path: Path, answering: list[subprocess.Popen[str]]
) -> None:
    with pytest.raises(StorageError, match="out/full: no space"):
        list(side_by_side(items("full", *"abcdefgh"), tmp_path, Choices(), 2))
    assert all(process.poll() is not None for process in answering)


def test_whoever_stops_listening_leaves_no_process(tmp_path: Path, answering: list[subprocess.Popen[str]]) -> None:
    results = side_by_side(items(*"abcdefgh"), tmp_path, Choices(), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert answering
    assert all(process.poll() is not None for process in answering)


def test_many_small_images_are_done_at_once_and_large_ones_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "memory_bytes", lambda: 100 * 2**30)
    small = [Item(tmp_path / f"{number}.png", None, str(number)) for number in range(4 * IMAGES_PER_PROCESS)]
    for item in small:
        item.path.write_bytes(b"small")
    large = Item(tmp_path / "slide.svs", None, "slide")
    with large.path.open("wb") as file:
        file.truncate(SMALL_BYTES + 1)
    every = [large, *small]
    assert shared_out(every, Choices(), None, 2) == (small, [large], 2, 1)
    assert shared_out(every, Choices(), None, 64) == (small, [large], 4, 16)
    assert shared_out(small[: 2 * IMAGES_PER_PROCESS - 1], Choices(), None, 8).together == []
    assert shared_out(every, Choices(device="cuda"), None, 2) == ([], every, 1, 2)
    assert shared_out(every, Choices(), 1, 2) == ([], every, 1, 2)
    assert shared_out(every, Choices(), 3, 6) == (every, [], 3, 2)
    monkeypatch.setattr(module, "memory_bytes", lambda: 2**30)
    assert shared_out(every, Choices(), None, 64).processes == 1
