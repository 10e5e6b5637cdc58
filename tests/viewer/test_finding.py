"""What is shown for what is given, and the one line for what cannot be shown."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from seunet.errors import InputError, ResourceError
from seunet.viewer import find_shown, free_port
from seunet.viewer import serve as serving
from support.cli import seunet
from support.viewed import made_result, made_slide
from tests.viewer.conftest import Made

CIRCLES = [(40.0, 40.0, 12.0)]


def test_an_out_folder_shows_all_its_results_with_their_slide(made: Made) -> None:
    found = find_shown([str(made.out)])
    assert [(one.name, one.slide) for one in found.shown] == [("first", made.slide), ("second", made.slide)]
    assert not found.faults
    assert all(not one.notes for one in found.shown)


def test_one_result_a_run_json_and_a_slide_without_results_are_shown(made: Made) -> None:
    for given in (made.out / "first", made.out / "first" / "run.json"):
        assert [one.name for one in find_shown([str(given)]).shown] == ["first"]
    for given in (made.slide, made.slide.parent):
        assert [(one.name, one.folder) for one in find_shown([str(given)]).shown] == [("slide.tif", None)]


def test_a_slide_given_beside_its_result_is_shown_once(made: Made) -> None:
    shown = find_shown([str(made.out / "first"), str(made.slide)]).shown
    assert [one.name for one in shown] == ["first"]


def test_a_folder_without_results_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no results and no images in this folder; make some: seunet segment"):
        find_shown([str(tmp_path)])


def test_a_missing_path_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file or folder; check the path"):
        find_shown([str(tmp_path / "nowhere")])


def test_a_slide_that_is_gone_is_said_so_and_its_result_is_shown(tmp_path: Path) -> None:
    slide = made_slide(tmp_path / "gone.tif", 100, CIRCLES)
    made_result(tmp_path / "out" / "a", slide, 100, CIRCLES)
    slide.unlink()
    (one,) = find_shown([str(tmp_path / "out")]).shown
    assert one.slide is None
    assert one.notes == ("the slide gone.tif is gone: labels and outlines are shown without it",)


def test_a_slide_that_was_moved_is_found_where_it_is_given(tmp_path: Path) -> None:
    slide = made_slide(tmp_path / "here.tif", 100, CIRCLES)
    made_result(tmp_path / "out" / "a", slide, 100, CIRCLES)
    there = slide.rename(tmp_path / "out" / "here.tif")
    assert find_shown([str(tmp_path / "out" / "a")]).shown[0].slide == there


def test_a_half_written_result_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "out" / "begun" / ".work").mkdir(parents=True)
    with pytest.raises(InputError, match=r"run.json is missing, it was begun and not finished; run the same"):
        find_shown([str(tmp_path / "out")])
    slide = made_slide(tmp_path / "slide.tif", 100, CIRCLES)
    folder = made_result(tmp_path / "out" / "whole", slide, 100, CIRCLES)
    found = find_shown([str(tmp_path / "out")])
    assert [one.name for one in found.shown] == ["whole"]
    assert len(found.faults) == 1
    (folder / "objects.geojson").unlink()
    (folder / "labels.tif").unlink()
    notes = find_shown([str(folder)]).shown[0].notes
    assert notes == ("objects.geojson and labels.tif of this result are missing",)
    (folder / "run.json").unlink()
    (folder / "labels.tif").touch()
    with pytest.raises(InputError, match=r"run.json is missing, it is half written"):
        find_shown([str(folder)])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"image": {"file": 1}}', "[" * 100_000, '{"image": null}'])
def test_a_run_json_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run.json: is not of `seunet segment`; make the result again"):
        find_shown([str(tmp_path)])


def test_a_slide_that_has_changed_is_said_so(tmp_path: Path) -> None:
    slide = made_slide(tmp_path / "slide.tif", 100, CIRCLES)
    folder = made_result(tmp_path / "out" / "a", slide, 100, CIRCLES)
    slide.write_bytes(slide.read_bytes() + b" ")
    assert find_shown([str(folder)]).shown[0].notes == (
        "slide.tif has changed since it was analysed: what is shown may not fit",
    )


def test_a_port_in_use_leads_to_the_next_free_one() -> None:
    with free_port(0) as first, free_port(first.getsockname()[1]) as second:
        assert first.getsockname()[1] < second.getsockname()[1]
        assert second.getsockname()[0] == "127.0.0.1"


def test_ports_that_are_none_or_all_taken_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"--port 70000: must be a number from 0 to 65535"):
        free_port(70_000)
    monkeypatch.setattr(serving, "TRIES", 1)
    with free_port(0) as first, pytest.raises(ResourceError, match=r"it and the 0 after it are in use; give another"):
        free_port(first.getsockname()[1])


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    assert seunet("view", tmp_path / "no").code == 2
    ran = seunet("view", tmp_path, "--no-browser")
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def test_the_command_serves_says_the_next_port_and_that_no_browser_opened(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time
    import webbrowser

    import uvicorn

    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    # Serving itself is shown by the other tests; here it ends as Ctrl-C ends it.
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: (time.sleep(0.3), _interrupt()))
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        ran = seunet("view", made.out, "--port", port)
    assert ran.code == 0
    assert f"note: port {port} is in use; " in ran.err
    assert ran.out.startswith("http://127.0.0.1:")
    assert "no browser could be opened; open the address above in one on this machine" in ran.out


def test_ctrl_c_is_how_it_ends(made: Made) -> None:
    command = [sys.executable, "-m", "seunet", "view", str(made.out), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        connection.request("GET", f"{address.path}api/shown")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "ended\n")


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_results_in_subfolders_of_out_are_shown(tmp_path: Path) -> None:
    slide = made_slide(tmp_path / "slide.tif", 100, CIRCLES)
    folders = [made_result(tmp_path / "out" / patient / "slide", slide, 100, CIRCLES) for patient in ("p1", "p2")]
    assert [one.folder for one in find_shown([str(tmp_path / "out")]).shown] == folders


def test_answers_are_sent_at_once() -> None:
    """Python sets TCP_NODELAY on sockets that say they are TCP; otherwise every tile waits 40 ms for nothing."""
    with free_port(0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
