"""What is printed of the progress where there is no terminal."""

from __future__ import annotations

import pytest

from seunet.cli import progress as module
from seunet.cli.progress import progress_of


def test_lines_have_the_name_the_share_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 100.0, 110.0, 131.0, 140.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with progress_of(True, timed=True, name="2 of 9 slide.svs") as show:
        assert show is not None
        for done in (0, 100, 310):
            show(done, 1000, "segmenting")
        show(1, 1, "writing the results")
    assert capsys.readouterr().err.splitlines() == [
        "[  0%] 2 of 9 slide.svs: segmenting",
        "[ 31%] 2 of 9 slide.svs: segmenting  69 s left",
        "[100%] 2 of 9 slide.svs: writing the results",
    ]


def test_nothing_to_do_is_all_done(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of(True, timed=True) as show:
        assert show is not None
        show(0, 0, "segmenting")
    assert capsys.readouterr().err == "[100%] segmenting\n"
