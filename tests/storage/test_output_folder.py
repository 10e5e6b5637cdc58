"""Two runs do not share a folder, and a lock outlives nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seunet.errors import InputError, StorageError
from seunet.storage import output_folder as holding
from seunet.storage.output_folder import held

HOLD = """
import sys
from pathlib import Path
from seunet.storage.output_folder import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_what_another_process_holds_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "slide"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is at work there; wait for it or stop it"), held(folder):
            pass
        other.kill()
    assert (folder / ".lock").is_file()  # left behind, and in nobody's way
    with held(folder):
        (folder / "result").write_text("")
    assert [path.name for path in folder.iterdir()] == ["result"]


def test_a_folder_that_stays_empty_is_removed(tmp_path: Path) -> None:
    with held(tmp_path / "a"):
        assert (tmp_path / "a").is_dir()
    assert not (tmp_path / "a").exists()


def test_a_lock_that_was_removed_while_it_was_waited_for_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, opened = holding.lock_file, []

    def removed_first(file: int) -> None:
        if not opened:
            (tmp_path / ".lock").unlink()
        opened.append(file)
        lock(file)

    monkeypatch.setattr(holding, "lock_file", removed_first)
    with held(tmp_path):
        assert len(opened) == 2
        assert os.path.samestat(os.fstat(opened[-1]), (tmp_path / ".lock").stat())


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="is a file or lies below one; choose another OUT"), held(path):
            pass
    with pytest.raises(StorageError, match=r"cannot be written \(File name too long\)"), held(tmp_path / ("x" * 300)):
        pass
