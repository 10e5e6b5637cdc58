"""docs/data.md: its commands and its code run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.record import MEASURED
from benchmarks.reliability.data import MUST
from seunet.data.formats.imagescope import Region
from seunet.data.prepare.outlines import paint_regions
from seunet.errors import InputError
from support.cli import seunet
from support.datasets import class_map, write_bcss, write_lab, write_monuseg

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "data.md").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("docs")
    write_monuseg(root / "downloads", train=2, test=1)
    write_bcss(root / "bcss")
    write_lab(root / "lab")
    class_map(root / "classes.csv")
    return root


def test_the_pages_commands_and_then_its_code_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    commands = re.findall(r"^\$ seunet (.*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        ran = seunet(*shlex.split(command))
        assert ran.code == 0, (command, ran.err)
    blocks = re.findall(r"```py(?:thon)?\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        script = place / f"block{number}.py"
        # A script that starts worker processes is guarded, as in any program.
        script.write_text("if True:\n" + "".join(f"    {line}\n" for line in block.splitlines()))
        ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=place)
        assert ran.returncode == 0, ran.stderr


def test_the_example_of_an_error_is_the_one_that_is_raised() -> None:
    ring = [(990.0, 990.0)] * 6 + [(1043.0, 998.0)]
    with pytest.raises(InputError) as caught:
        paint_regions([Region(1, "41", np.array(ring))], "TCGA-18-5592.xml", 1000, 1000, clip=False)
    assert str(caught.value) in PAGE


def test_nothing_that_must_be_zero_is_not() -> None:
    reliability = json.loads((MEASURED / "reliability_data.json").read_text())
    rows = {key: value for key, value in reliability.items() if key not in ("command", "commit", "machine")}
    assert {
        (row, key): value for row, values in rows.items() for key, value in values.items() if key in MUST and value
    } == {}
    assert reliability["xml"]["files"] >= 10_000
    assert reliability["images"]["files"] >= 10_000
    assert reliability["rings"]["rings"] >= 5_000
