"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seunet.errors import StorageError
from seunet.storage import atomic


def test_a_file_is_written_with_its_folder(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "new" / "a.txt", "grün")
    assert (tmp_path / "new" / "a.txt").read_text() == "grün"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("call", ["mkstemp", "write", "fsync", "replace"])
def test_a_full_disk_at_any_step_leaves_the_old_file_and_nothing_else(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    places = {
        "mkstemp": (atomic.tempfile, "mkstemp"),
        "write": (Path, "write_bytes"),
        "fsync": (os, "fsync"),
        "replace": (os, "replace"),
    }
    monkeypatch.setattr(*places[call], full)
    with pytest.raises(StorageError, match=r"a.txt: cannot be written \(No space left on device\)"):
        atomic.write_text(target, "new")
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_of_the_caller_leaves_no_trace(tmp_path: Path) -> None:
    def half_write() -> None:
        with atomic.atomic_path(tmp_path / "a.txt") as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_write()
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    atomic.write_bytes(tmp_path / "a", b"")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
