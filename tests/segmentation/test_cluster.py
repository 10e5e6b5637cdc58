"""A cohort over a Dask cluster gives the bytes of one process, and survives the death of a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.errors import InputError
from seunet.segmentation import segment_many
from seunet.segmentation.inputs import find_inputs
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import one_after_the_other, over_cluster
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


def kill_whoever_holds(folder: Path, killed: list[int]) -> None:
    """Kill −9 the process that has the lock of this result open, once it has done a tile or two."""
    for _ in range(4000):
        time.sleep(0.01)
        ledgers = list((folder / ".work").glob("*.jsonl")) if folder.is_dir() else []
        if not any(path.read_bytes().count(b"\n") >= 3 for path in ledgers):
            continue
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or not worker_of(int(process.name)):
                continue
            try:
                held = [os.readlink(entry) for entry in (process / "fd").iterdir()]
            except OSError:
                continue
            if str(folder / ".lock") in held:
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(int(process.name))
                return


def test_two_workers_one_of_them_killed_give_the_bytes_of_one_process(choices: Choices, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    make_slide(tmp_path / "in" / "slide.tif", 1024)
    random = np.random.default_rng(3)
    for name in ("b", "c"):
        Image.fromarray(discs(140, 170, random)).save(tmp_path / "in" / f"{name}.png")
    (tmp_path / "in" / "bad.png").write_bytes(b"no picture")
    items = find_inputs([str(tmp_path / "in")]).items
    alone = list(one_after_the_other(items, tmp_path / "alone", choices, lambda item: None))
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
    assert segment_many.CONNECT_SECONDS < 10  # libraries take seconds to load
    monkeypatch.setattr(segment_many, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", web_server):
        start = time.monotonic()
        with pytest.raises(InputError, match=rf"--dask {address}: no scheduler answers there \(\w+\); start one"):
            list(over_cluster([], Path("out"), Choices(), address))
        assert time.monotonic() - start < 5
