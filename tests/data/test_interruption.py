"""Killed, terminated, out of time, out of memory: nothing half-written is ever taken for finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.data.formats.monuseg import plan_monuseg
from seunet.data.prepare.one_image import Job
from seunet.data.prepare.plan import PrepareSettings
from seunet.data.prepare.pool import Worker, run_jobs
from seunet.data.verification import verify
from seunet.errors import InputError, ResourceError, SeunetError
from support.cli import seunet
from support.datasets import tree_bytes, write_monuseg
from support.interruption import end_after, finish, start


def jobs_for(tmp_path: Path, count: int = 1) -> list[Job]:
    source = write_monuseg(tmp_path / "src", train=0, test=count)
    return plan_monuseg(source, tmp_path / "dest", PrepareSettings()).jobs


def test_killed_at_any_moment_and_run_again_gives_the_bytes_of_an_unbroken_run(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=6, test=2, size_px=256)
    began = time.monotonic()
    code, err = finish(start(source, tmp_path / "whole"))
    assert code == 0, err
    needed = time.monotonic() - began
    expected = tree_bytes(tmp_path / "whole")
    for number in range(4):
        dest = tmp_path / f"broken{number}"
        for share in (0.3 + 0.1 * number, 0.9 - 0.1 * number):
            end_after(start(source, dest), needed * share, signal.SIGKILL)
        code, err = finish(start(source, dest))
        assert code == 0, err
        assert tree_bytes(dest) == expected


def test_terminated_it_says_so_exits_with_143_and_goes_on_later(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=20, test=2, size_px=256)
    process = start(source, tmp_path / "a")
    while not list((tmp_path / "a").glob(".work/*.json")):
        time.sleep(0.01)
    code, err = end_after(process, 0, signal.SIGTERM)
    assert code == 143
    assert err == "seunet: terminated; repeat the command to resume\n"
    assert not list((tmp_path / "a").glob("images/.*.part"))
    assert not (tmp_path / "a" / "manifest.json").exists()
    process = start(source, tmp_path / "a")
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert " of 22 images were finished before" in out


def test_a_finished_image_whose_file_was_damaged_is_made_again(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=1)
    xml = next(source.rglob("TCGA-01*.xml"))
    good = xml.read_text()
    xml.write_text("<Annotations>")
    assert finish(start(source, tmp_path / "a"))[0] == 2
    xml.write_text(good)
    (tmp_path / "a" / "images" / "TCGA-00-1000-01Z-00-DX1.png").write_bytes(b"cut")
    assert finish(start(source, tmp_path / "a"))[0] == 0
    assert verify(tmp_path / "a") == []


def test_a_run_killed_while_it_wrote_its_claim_is_nobodys(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=0)
    (tmp_path / "a" / ".work").mkdir(parents=True)
    (tmp_path / "a" / ".work" / ".claim.abc.part").write_bytes(b"")
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 0, ran.err
    assert not (tmp_path / "a" / ".work").exists()


def test_a_worker_whose_parent_is_gone_ends_at_once() -> None:
    command = [sys.executable, "-m", "seunet.data.prepare.worker", "4000000000", "1"]
    assert subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, timeout=600).returncode == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"mark": 1, "record": 2}', '{"mark": 1, "record": {}}', "\x00"])
def test_a_record_that_was_meddled_with_counts_as_not_there(tmp_path: Path, text: str) -> None:
    source = write_monuseg(tmp_path / "src", train=1, test=1)
    xml = next(source.rglob("TCGA-01*.xml"))
    good = xml.read_text()
    xml.write_text("<Annotations>")
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 2
    (tmp_path / "a" / ".work" / "TCGA-00-1000-01Z-00-DX1.json").write_text(text)
    xml.write_text(good)
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 0, ran.err
    assert "finished before" not in ran.out
    assert verify(tmp_path / "a") == []


def test_a_source_corrected_or_removed_meanwhile_does_not_cost_what_was_finished(tmp_path: Path) -> None:
    source = write_monuseg(tmp_path / "src", train=3, test=0)
    xml = next(source.rglob("TCGA-02*.xml"))
    good = xml.read_text()
    xml.write_text("<Annotations>")
    assert seunet("data", "prepare", "monuseg", source, tmp_path / "a").code == 2
    xml.write_text(good)
    for file in [*source.rglob("TCGA-00*.*")]:
        file.unlink()
    ran = seunet("data", "prepare", "monuseg", source, tmp_path / "a")
    assert ran.code == 0, ran.err
    assert "1 of 2 images were finished before" in ran.out
    assert sorted(path.name[:7] for path in (tmp_path / "a" / "images").iterdir()) == ["TCGA-01", "TCGA-02"]
    assert verify(tmp_path / "a") == []


def test_a_file_that_takes_too_long_costs_itself_and_not_the_run(tmp_path: Path) -> None:
    outcomes = list(run_jobs(jobs_for(tmp_path, 2), workers=1, limit_seconds=0.001))
    assert len(outcomes) == 2
    for outcome in outcomes:
        assert isinstance(outcome.error, InputError)
        assert str(outcome.error).endswith(".tif: not decoded within 0.001 s; export it again or leave it out")


def test_a_crashed_decoder_is_named_and_the_next_job_gets_a_new_process(tmp_path: Path) -> None:
    (job,) = jobs_for(tmp_path)
    worker = Worker()
    os.kill(worker.pid, signal.SIGSEGV)
    outcome = worker.ask(0, job)
    assert str(outcome.error).endswith(".tif: its decoder crashed (signal 11); export the file again or leave it out")
    assert not worker.alive
    killed = Worker()
    os.kill(killed.pid, signal.SIGKILL)
    error = killed.ask(0, job).error
    assert isinstance(error, ResourceError)
    assert str(error).endswith(".tif: its worker ran out of memory; use a smaller image")


def test_memory_beyond_the_limit_is_a_resource_error(tmp_path: Path) -> None:
    (job,) = jobs_for(tmp_path)
    Image.fromarray(np.zeros((9000, 9000, 3), dtype=np.uint8)).save(job["image"], compression="tiff_lzw")
    (outcome,) = run_jobs([job], workers=1, limit_bytes=500_000_000)
    assert isinstance(outcome.error, ResourceError)
    assert "memory" in str(outcome.error)
    assert outcome.error.exit_code == 4


def test_a_bug_in_a_worker_is_one_line_that_asks_for_a_report(tmp_path: Path) -> None:
    (job,) = jobs_for(tmp_path)
    del job["split"]
    (outcome,) = run_jobs([job], workers=1)
    assert type(outcome.error) is SeunetError
    assert outcome.error.exit_code == 70
    assert str(outcome.error).endswith(
        ".tif: worker ended unexpectedly (KeyError: 'split'); please report it with the file"
    )


def test_without_any_process_to_be_had_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    with pytest.raises(ResourceError, match="1 images left and no worker process could be run; use fewer --workers"):
        list(run_jobs(jobs_for(tmp_path), workers=2))


def test_leaving_early_ends_the_workers(tmp_path: Path) -> None:
    running = run_jobs(jobs_for(tmp_path, 4), workers=2)
    next(running)
    children = _children()
    assert children
    running.close()
    assert not _children() & children


def _children() -> set[int]:
    mine = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            mine.add(int(status.parent.name))
    return mine
