"""Compiled functions outlive the run wherever something can be written, and nothing wrong with that place stops one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LOOPS = """
from seunet.kernels.compiling import compiled, worker_function

@compiled
def squares(count):
    total = 0
    for i in range(count):
        total += i * i
    return total

@worker_function
def first(job):
    job[0] = 7
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
    value = loops.squares(4)
hits = sum(loops.squares.stats.cache_hits.values()) + loops.first.cache_hits
print(json.dumps({"value": value, "hits": hits, "told": [str(one.message) for one in told]}))
"""


def run(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a fresh process sees."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    ran = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(folder), *arguments],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


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
    files = [path for path in kept.rglob("*.nb?") if path.is_file()]
    assert len(files) == 4
    for path in files:
        path.write_bytes(path.read_bytes()[:-9])
    assert run(nowhere, NUMBA_CACHE_DIR=str(kept)) == {"value": 14, "hits": 0, "told": []}
    assert run(nowhere, NUMBA_CACHE_DIR=str(kept)) == {"value": 14, "hits": 2, "told": []}
