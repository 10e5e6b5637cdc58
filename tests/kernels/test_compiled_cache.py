"""Compiled functions outlive the run wherever something can be written, and nothing wrong with that place stops one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seunet.kernels.compiling.files import KEPT_FILES, CompiledFiles

LOOPS = """
from seunet.kernels.compiling import compiled

@compiled
def square(i):
    return i * i

@compiled
def squares(count):
    total = 0
    for i in range(count):
        total += square(i)
    return total
"""
PROGRAM = """
import json, sys, warnings
sys.path.insert(0, sys.argv[1])
if len(sys.argv) > 2:
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import loops
    squares = loops.squares
    assert "numba" not in sys.modules, "Numba was loaded before it was needed"
    value = squares(4) + loops.square(0)
hits = sum(sum(one.stats.cache_hits.values()) for one in (loops.squares, loops.square))
print(json.dumps({"value": value, "hits": hits, "told": [str(one.message) for one in told]}))
"""


def start(folder: Path, *arguments: str, program: str = PROGRAM, **environment: str) -> subprocess.Popen[str]:
    """A fresh process."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", program, str(folder), *arguments],
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def seen(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it saw."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def run(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a fresh process sees."""
    return seen(start(folder, *arguments, **environment))


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A module beside which nothing can be written, not even by root."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "loops.py").write_text(LOOPS)
    (folder / "__pycache__").write_text("")
    (tmp_path / "temporary").mkdir()
    return folder


NO_HOME = {"HOME": "/proc/none", "NUMBA_CACHE_DIR": "/proc/none/either"}


def test_without_a_home_they_are_kept_in_a_temporary_folder_of_the_user(nowhere: Path) -> None:
    temporary = nowhere.parent / "temporary"
    assert run(nowhere, TMPDIR=str(temporary), **NO_HOME) == {"value": 14, "hits": 0, "told": []}
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run(nowhere, TMPDIR=str(temporary), **NO_HOME) == {"value": 14, "hits": 2, "told": []}


def test_where_somebody_else_can_write_to_that_folder_it_is_not_used_and_said_once(nowhere: Path) -> None:
    temporary = nowhere.parent / "temporary"
    folder = temporary / f"seunet-compiled-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    line = (
        "compiled functions cannot be kept (no folder can be written), so every run compiles again; "
        "set NUMBA_CACHE_DIR to a folder that can be written"
    )
    for _ in range(2):
        assert run(nowhere, TMPDIR=str(temporary), **NO_HOME) == {"value": 14, "hits": 0, "told": [line]}
    assert not list(folder.iterdir())


def test_a_full_disk_is_said_once_and_stops_nothing(nowhere: Path) -> None:
    kept = nowhere.parent / "kept"
    found = run(nowhere, "100", NUMBA_CACHE_DIR=str(kept))
    assert (found["value"], found["hits"]) == (14, 0)
    (line,) = found["told"]
    assert line.startswith("compiled functions cannot be kept (File too large), so every run compiles again; ")
    assert run(nowhere, NUMBA_CACHE_DIR=str(kept)) == {"value": 14, "hits": 0, "told": []}


def test_what_was_cut_short_is_compiled_again_and_whole_the_next_time(nowhere: Path) -> None:
    kept = nowhere.parent / "kept"
    run(nowhere, NUMBA_CACHE_DIR=str(kept))
    files = list(kept.rglob("*.nbc"))
    assert len(files) == 2
    for path in files:
        path.write_bytes(path.read_bytes()[:-9])
    assert run(nowhere, NUMBA_CACHE_DIR=str(kept)) == {"value": 14, "hits": 0, "told": []}
    assert run(nowhere, NUMBA_CACHE_DIR=str(kept)) == {"value": 14, "hits": 2, "told": []}


def test_processes_started_together_compile_each_function_once(nowhere: Path) -> None:
    kept = nowhere.parent / "kept"
    processes = [start(nowhere, NUMBA_CACHE_DIR=str(kept)) for _ in range(4)]
    found = [seen(process) for process in processes]
    assert {one["value"] for one in found} == {14}
    assert sum(one["hits"] for one in found) == 2 * 4 - 2
    assert len(list(kept.rglob("*.nbc"))) == 2


def test_two_versions_share_a_folder_and_each_finds_its_own(nowhere: Path) -> None:
    kept = nowhere.parent / "kept"
    other = LOOPS.replace("i * i", "i * 2")
    for text, expected in ((LOOPS, (14, 0)), (other, (12, 0)), (LOOPS, (14, 2))):
        (nowhere / "loops.py").write_text(text)
        found = run(nowhere, NUMBA_CACHE_DIR=str(kept))
        assert (found["value"], found["hits"]) == expected


HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import loops
loops.square(0)
loops.square._cache._files.lock()
print("holds", flush=True)
time.sleep(600)
"""
PATIENCE = "from seunet.kernels.compiling import files\nfiles.WAIT_SECONDS = {seconds}\n"


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_stops_while_it_compiles_is_not_waited_for(nowhere: Path, fate: signal.Signals) -> None:
    kept = nowhere.parent / "kept"
    holder = start(nowhere, program=HOLDER, NUMBA_CACHE_DIR=str(kept))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        holder.send_signal(fate)
        for path in kept.rglob("*.nbc"):
            path.unlink()
        # Longer than this test waits, where the system must have taken the lock from the dead.
        program = PATIENCE.format(seconds=1000 if fate == signal.SIGKILL else 1) + PROGRAM
        found = seen(start(nowhere, program=program, NUMBA_CACHE_DIR=str(kept)))
        assert found == {"value": 14, "hits": 0, "told": []}
    finally:
        holder.kill()
        holder.communicate()


KERNEL = """
import json, sys
from seunet.kernels.compiling import worker_address
address = worker_address("pooling", "float32", False)
print(json.dumps({"found": address != 0, "compiled": "numba" in sys.modules}))
"""


def test_eight_processes_compile_a_kernel_once_and_the_others_do_without_numba(tmp_path: Path) -> None:
    processes = [start(tmp_path, program=KERNEL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(8)]
    found = [seen(process) for process in processes]
    assert all(one["found"] for one in found)
    assert sum(one["compiled"] for one in found) == 1
    (kept,) = tmp_path.rglob("*.nbc")
    kept.write_bytes(kept.read_bytes()[:-9])
    assert seen(start(tmp_path, program=KERNEL, NUMBA_CACHE_DIR=str(tmp_path)))["compiled"]


def test_only_the_newest_files_of_a_function_are_kept(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path, "function")
    for number in range(KEPT_FILES + 3):
        files.save(b"code", number)
        newest = max(tmp_path.glob("*.nbc"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    assert [files.load(number) for number in range(4)] == [None, None, None, b"code"]
    assert files.load(KEPT_FILES + 2) == b"code"
