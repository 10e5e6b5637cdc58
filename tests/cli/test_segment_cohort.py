"""Several images into one OUT: stopped, repeated, by several processes, from several folders."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from support.cli import seunet
from support.slides import make_slide
from tests.cli.test_segment import start


def test_ctrl_c_says_how_to_resume_and_the_command_resumes(disc_model: Path, tmp_path: Path) -> None:
    slide, result = make_slide(tmp_path / "slide.tif", 1024), tmp_path / "out" / "slide"
    options = (slide, "-m", disc_model, "--tile-size", 128, "-o", tmp_path / "out")
    process, ledger = start(*options), result / ".work" / "ledger.jsonl"
    while process.poll() is None and not (ledger.is_file() and ledger.read_bytes().count(b"\n") > 2):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "seunet: interrupted; repeat the command to resume\n")
    assert seunet("segment", *options, "--no-progress").code == 0
    clock = json.loads((result / "run.json").read_text())["clock"]
    assert 0 < clock["tiles_from_before"] < clock["tiles"]
