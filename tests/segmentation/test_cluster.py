"""A cohort over a Dask cluster gives the bytes of one process, and survives the death of a worker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import seunet
from seunet.errors import InputError, ResourceError, StorageError
from seunet.segmentation.cluster import connection, over_cluster
from seunet.segmentation.inputs import find_inputs
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Failure, Result, one_after_the_other
from support.dask_cluster import Workers, scheduler, take_for_dead
from support.slides import make_slide
from tests.cli.test_segment import result_bytes
from tests.support.tissue_model import discs

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def choices(disc_model: Path) -> Choices:
    return Choices(model=str(disc_model), tile_px=128)


def worker_of(pid: int) -> bool:
    try:
        return b"multiprocessing" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def tiles_done(folder: Path) -> int:
    """Lines of the ledger, the first of which is no tile."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / ".work").glob("*.jsonl"))


def holders(pids: Iterable[int], path: str) -> list[int]:
    """Which of these processes have a file open."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if path in [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]:
                found.append(pid)
    return found


def wait_until(look: Callable[[], Any]) -> Any:
    """What it finds, once it finds something."""
    for _ in range(30_000):
        if found := look():
            return found
        time.sleep(0.01)
    raise TimeoutError


def kill_whoever_holds(folder: Path, killed: list[int]) -> None:
    """Kill −9 the process that has the lock of this result open, once it has done a tile or two."""
    wait_until(lambda: tiles_done(folder) >= 3)
    everyone = (int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit())
    (pid,) = holders(filter(worker_of, everyone), str(folder / ".lock"))
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)


def test_two_workers_one_of_them_killed_give_the_bytes_of_one_process(choices: Choices, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    make_slide(tmp_path / "in" / "slide.tif", 1024)
    random = np.random.default_rng(3)
    for name in ("b", "c"):
        Image.fromarray(discs(140, 170, random)).save(tmp_path / "in" / f"{name}.png")
    (tmp_path / "in" / "bad.png").write_bytes(b"no picture")
    items = find_inputs([str(tmp_path / "in")]).items
    alone = list(one_after_the_other(items, tmp_path / "alone", choices))
    killed: list[int] = []
    killer = threading.Thread(target=kill_whoever_holds, args=(tmp_path / "spread" / "slide", killed))
    killer.start()
    spread = list(over_cluster(items, tmp_path / "spread", choices, "local", workers=2))
    killer.join()
    assert len(killed) == 1, "the worker at the slide was killed in the middle of it"
    assert sorted(spread) == sorted(alone)
    done = [one.name for one in spread if isinstance(one, FileResult)]
    assert sorted(done) == ["b", "c", "slide"]
    for name in done:
        assert result_bytes(tmp_path / "spread" / name) == result_bytes(tmp_path / "alone" / name)


@pytest.fixture
def web_server() -> Iterator[str]:
    """Where something else than a scheduler listens, as its dashboard does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"tcp://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_where_no_scheduler_answers_it_is_one_line_within_fifteen_seconds(
    web_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.CONNECT_SECONDS < 10  # libraries take seconds to load
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", web_server):
        start = time.monotonic()
        with pytest.raises(InputError, match=rf"--dask {address}: no scheduler answers there \(\w+\); start one"):
            list(over_cluster([], Path("out"), Choices(), address))
        assert time.monotonic() - start < 5


# A scheduler and workers of their own, with faults


@pytest.fixture(scope="module")
def forge() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def workers(forge: Workers) -> Iterator[Workers]:
    yield forge
    forge.end()


NAMES = "abcdefghijkl"
HERE = Path("/proc/self/cwd")


@pytest.fixture
def cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disc_model: Path) -> Choices:
    """Small images below the folder that a process runs in: another process may run elsewhere."""
    shutil.copytree(disc_model, tmp_path / "here" / "model")
    (tmp_path / "here" / "in").mkdir()
    (tmp_path / "here" / "out").mkdir()
    random = np.random.default_rng(3)
    for name in NAMES:
        Image.fromarray(discs(50, 40, random)).save(tmp_path / "here" / "in" / f"{name}.png")
    monkeypatch.chdir(tmp_path / "here")
    return Choices(model="/proc/self/cwd/model", tile_px=128)


def spread(choices: Choices, address: str) -> dict[str, Result]:
    found = list(over_cluster(find_inputs([str(HERE / "in")]).items, HERE / "out", choices, address))
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def another_folder(here: Path, folder: Path, without: str) -> Path:
    """As `here`, but for one of its folders."""
    shutil.copytree(here / "model", folder / "model")
    for name in {"in", "out"} - {without}:
        (folder / name).symlink_to(here / name)
    return folder


def with_other_weights(here: Path, folder: Path) -> Path:
    another_folder(here, folder, "none")
    shutil.rmtree(folder / "model")
    torch.manual_seed(5)
    seunet.create_model("seunet", widths=(10, 20), classes=2, preset="geometric").save_pretrained(folder / "model")
    return folder


FAULTS: dict[str, tuple[Callable[[Path, Path], dict[str, Any]], str]] = {
    "version": (
        lambda here, other: {"version": "0.0.9", "folder": str(here)},
        "has seunet 0.0.9, the command 0.1.0; install the same on all nodes",
    ),
    "weights": (
        lambda here, other: {"folder": str(with_other_weights(here, other))},
        r"has other weights as /proc/self/cwd/model \(sha256 \w{12}, the command \w{12}\); copy the model to all nodes",
    ),
    "input": (
        lambda here, other: {"folder": str(another_folder(here, other, "in"))},
        r"does not see /proc/self/cwd/in/\w.png; share the folder under the same path",
    ),
    "output": (
        lambda here, other: {"folder": str(another_folder(here, other, "out"))},
        "does not see /proc/self/cwd/out as the command does; share the folder under the same path",
    ),
    "disk": (
        lambda here, other: {"folder": str(here), "file_bytes": 512},
        r"cannot be used \(File too large\); free space or choose another place",
    ),
}


def named(line: str) -> str:
    return rf"worker tcp://127.0.0.1:\d+ on {re.escape(socket.gethostname())}: .*{line}"


def test_workers_that_are_not_fit_are_named_once_and_their_slides_go_elsewhere(
    cohort: Choices, workers: Workers, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    with scheduler() as (address, _):
        for fault, (plant, _) in FAULTS.items():
            workers.start(address, **plant(here, tmp_path / fault))
        workers.start(address, folder=str(here))
        found = spread(cohort, address)
    assert [one for one in found.values() if not isinstance(one, FileResult) or one.state != "done"] == []
    notes = [note for one in found.values() if isinstance(one, FileResult) for note in one.lines if "worker" in note]
    for fault, (_, line) in FAULTS.items():
        said = [note for note in notes if re.search(named(line) + r" \(done by another worker\)", note)]
        assert len(said) == 1, fault
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(NAMES)
    for one in one_after_the_other(find_inputs(["in"]).items, tmp_path / "alone", cohort):
        assert result_bytes(here / "out" / one.name) == result_bytes(tmp_path / "alone" / one.name)


def test_where_no_worker_is_fit_every_slide_says_why_and_nothing_is_written(
    cohort: Choices, workers: Workers, tmp_path: Path
) -> None:
    plant, line = FAULTS["output"]
    with scheduler() as (address, _):
        workers.start(address, **plant(tmp_path / "here", tmp_path / "other"))
        found = spread(cohort, address)
    assert sorted(found) == sorted(NAMES)
    for one in found.values():
        assert isinstance(one, Failure)
        assert re.search(f"no worker can do it: {named(line)}", one.line)
    assert not list((tmp_path / "here" / "out").iterdir())
    assert not (tmp_path / "other" / "out").exists()


def test_a_disk_that_is_full_for_every_worker_ends_it(cohort: Choices, workers: Workers, tmp_path: Path) -> None:
    plant, line = FAULTS["disk"]
    with scheduler() as (address, _):
        workers.start(address, **plant(tmp_path / "here", tmp_path / "other"))
        with pytest.raises(StorageError, match=named(line)):
            spread(cohort, address)


def test_a_scheduler_that_is_gone_is_one_line_and_the_command_repeated_goes_on(
    cohort: Choices, workers: Workers, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    with scheduler() as (address, pid):
        workers.start(address, folder=str(here))
        results = over_cluster(find_inputs([str(HERE / "in")]).items, HERE / "out", cohort, address)
        first = next(results)
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ResourceError, match=f"--dask {address}: the scheduler is gone; start it again and repeat"):
            list(results)
        assert time.monotonic() - began < 15
    workers.end()
    with scheduler() as (address, _):
        workers.start(address, folder=str(here))
        found = spread(cohort, address)
    assert all(isinstance(one, FileResult) for one in found.values())
    assert found[first.name].state == "before"  # type: ignore[union-attr]
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(NAMES)


def test_a_slide_that_hangs_with_its_worker_is_waited_for_and_not_begun_twice(
    choices: Choices, workers: Workers, tmp_path: Path
) -> None:
    make_slide(tmp_path / "slide.tif", 640)
    (item,) = find_inputs([str(tmp_path / "slide.tif")]).items
    expected = list(one_after_the_other([item], tmp_path / "alone", choices))
    lock = str(tmp_path / "out" / "slide" / ".lock")
    with scheduler() as (address, _):
        for _ in range(2):
            workers.start(address)
        found: list[Result] = []
        thread = threading.Thread(target=lambda: found.extend(over_cluster([item], tmp_path / "out", choices, address)))
        thread.start()
        slow = wait_until(lambda: holders(workers.pids, lock) if tiles_done(tmp_path / "out" / "slide") else [])[0]
        os.kill(slow, signal.SIGSTOP)
        take_for_dead(address, slow)
        # Its slide is given to the other, which must not begin it.
        wait_until(lambda: set(holders(workers.pids, lock)) - {slow})
        before = tiles_done(tmp_path / "out" / "slide")
        time.sleep(0.3)
        assert tiles_done(tmp_path / "out" / "slide") == before
        assert not found
        os.kill(slow, signal.SIGCONT)
        thread.join(300)
    assert [one.row for one in found] == [one.row for one in expected]  # type: ignore[union-attr]
    assert result_bytes(tmp_path / "out" / "slide") == result_bytes(tmp_path / "alone" / "slide")
