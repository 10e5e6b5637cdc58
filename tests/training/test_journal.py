"""The log: whole lines, cut back on resuming."""

from __future__ import annotations

from pathlib import Path

import pytest

from seunet.errors import InputError, StorageError
from seunet.storage import Journal, rounded, rows
from support.training import failing_call, file_size_limit


def test_rows_are_lines_of_json_and_a_last_half_line_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log", 0)
    journal.append({"step": 1, "σ": [0.5]})
    journal.append({"step": 2})
    length = journal.sync()
    journal.close()
    assert (tmp_path / "log").read_text() == '{"step":1,"σ":[0.5]}\n{"step":2}\n'
    assert length == (tmp_path / "log").stat().st_size
    with (tmp_path / "log").open("a") as file:
        file.write('{"step":3,')
    assert [row["step"] for row in rows(tmp_path / "log")] == [1, 2]


@pytest.mark.parametrize(("start", "expected"), [(0, "c\n"), (4, '"a"\nc\n'), (None, '"a"\n"b"\nc\n')])
def test_it_goes_on_where_the_checkpoint_was_or_after_the_last_whole_line(
    start: int | None, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text('"a"\n"b"\nhalf a li')
    journal = Journal(tmp_path / "log", start)
    journal.append({"step": 1})
    journal.close()
    assert (tmp_path / "log").read_text() == expected.replace("c", '{"step":1}')


def test_a_log_shorter_than_its_checkpoint_says_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("{}\n")
    with pytest.raises(InputError) as error:
        Journal(tmp_path / "log", 10)
    expected = f"{tmp_path / 'log'}: shorter than when the checkpoint was taken; restore it, or --overwrite"
    assert str(error.value) == expected
    assert (tmp_path / "log").read_text() == "{}\n"


def test_a_full_disk_is_a_storage_error_once_and_whole_lines_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log", 0)
    for step in range(9):
        journal.append({"step": step})
    with file_size_limit(100), pytest.raises(StorageError) as error:
        journal.append({"step": 9})
    assert str(error.value) == (
        f"{tmp_path / 'log'}: cannot be written (File too large); free space or choose another place"
    )
    journal.close()
    assert [row["step"] for row in rows(tmp_path / "log")] == list(range(9))
    assert (tmp_path / "log").stat().st_size == 100


def test_a_disk_that_does_not_sync_and_a_folder_in_its_place_are_storage_errors(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log", 0)
    with failing_call("fsync"), pytest.raises(StorageError, match=r"log: cannot be written \(No space left on device"):
        journal.sync()
    journal.close()
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"folder: cannot be written \(Is a directory\)"):
        Journal(tmp_path / "folder")


def test_numbers_are_logged_to_six_digits() -> None:
    assert rounded([1 / 3, [2e-9 / 3]]) == [0.333333, [6.66667e-10]]
