"""The trial of a new user, in full: `make reliability` prints what the user sees.

A folder with good and bad files, nested names, Ctrl-C, two processes at once, no home, little memory, a full disk, a
scheduler that is not there.  Each step is one or more commands with the exit code and the words that must come; what
differs, and every traceback, ends the trial with exit code 1 after all steps.

    python -m benchmarks.reliability.trial [STEP …]

With steps named, only these are done.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from PIL import Image

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT
from benchmarks.reliability.zeros import exit_unless_zero
from support.datasets import he_pixels
from support.made_tissue import made_tissue

BENCHMARK = Benchmark("reliability.trial", (), 8)
MUST_BE_ZERO: Final = {"not_as_it_must_be", "tracebacks"}
NOWHERE: Final = "/proc/none"
"""A folder that nobody can make, root neither."""


class Seen(NamedTuple):
    """What a command came to."""

    code: int
    text: str
    seconds: float
    processor_seconds: float


class Trial:
    """A folder to work in, and what was not as it must be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = self.tracebacks = 0
        self.wrong: list[str] = []

    def start(self, command: str, **environment: str) -> subprocess.Popen[str]:
        """Begin a command in the folder, as `seunet` from this environment."""
        self.commands += 1
        print(f"$ {' '.join(f'{key}={value}' for key, value in environment.items())} {command}".replace("$  ", "$ "))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=os.environ | {"PATH": path} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def end(self, process: subprocess.Popen[str]) -> Seen:
        """Wait for a command and print what its user sees."""
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        text, _ = process.communicate(timeout=1800)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{text}exit {process.returncode}\n", flush=True)
        self.tracebacks += text.count("Traceback (most recent call last)")
        return Seen(process.returncode, text, time.monotonic() - start, used)

    def run(self, command: str, code: int, *words: str, **environment: str) -> Seen:
        """Run a command; its exit code and what it must say."""
        seen = self.end(self.start(command, **environment))
        self.check(seen.code == code, f"{command}: exit {seen.code}, not {code}")
        for word in words:
            self.check(word in seen.text, f"{command}: does not say {word!r}")
        return seen

    def check(self, holds: bool, sentence: str) -> None:
        """Note what does not hold."""
        if not holds:
            print(f"!! {sentence}")
            self.wrong.append(sentence)

    def summary(self, out: str) -> dict[str, str]:
        """The status of every input that OUT/summary.csv lists."""
        path = self.folder / out / "summary.csv"
        rows = csv.DictReader(path.read_text().splitlines()) if path.is_file() else ()
        return {row["name"]: row.get("status", "") for row in rows}


def good_and_bad(trial: Trial) -> None:
    """Good ones are done, bad ones are a line each, and the summary lists both."""
    folder = trial.folder / "slides"
    folder.mkdir()
    Image.fromarray(made_tissue(256, 1.0)).save(folder / "a.png")
    Image.fromarray(he_pixels(200, 1)).save(folder / "b.tif")
    whole = (folder / "a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.tif").write_bytes(b"")
    (folder / "words.jpg").write_text("not a picture")
    (folder / "notes.txt").write_text("for myself")
    bad = ("cut.png: ", "empty.tif: ", "words.jpg: ")
    trial.run("seunet segment slides -o out", 5, "licence of nuclei: CC BY-NC-SA 4.0", "2 done, 3 failed", *bad)
    states = {"a": "done", "b": "done", "cut": "failed", "empty": "failed", "words": "failed"}
    trial.check(trial.summary("out") == states, f"summary.csv: {trial.summary('out')}")
    trial.run("seunet segment slides -o out", 5, "2 done (2 of them before), 3 failed")
    trial.run("seunet segment slides/a.png -o out --mpp 0.5", 2, "mpp")
    trial.check(trial.summary("out") == states, f"summary.csv after another --mpp: {trial.summary('out')}")


def nested_names(trial: Trial) -> None:
    """Two slides of one name in two folders keep apart."""
    for number in (1, 2):
        (folder := trial.folder / "patients" / f"patient{number}").mkdir(parents=True)
        Image.fromarray(made_tissue(160, 1.0)).save(folder / "slide.png")
    trial.run("seunet segment patients --recursive -o nested", 0, "patient1/slide", "patient2/slide", "2 done")


def interrupted(trial: Trial) -> None:
    """Ctrl-C says how to resume, and what comes out is what an unbroken run gives."""
    Image.fromarray(np.tile(made_tissue(512, 1.0), (3, 3, 1))).save(trial.folder / "large.png")
    command = "exec seunet segment large.png --tile-size 256 -o"
    process = trial.start(f"{command} broken")
    ledger = trial.folder / "broken" / "large" / ".work" / "ledger.jsonl"
    for _ in range(6000):
        if process.poll() is not None or (ledger.is_file() and ledger.read_bytes().count(b"\n") > 3):
            break
        time.sleep(0.05)
    print("^C")
    process.send_signal(signal.SIGINT)
    seen = trial.end(process)
    trial.check(seen.code == 130, f"Ctrl-C: exit {seen.code}, not 130")
    trial.check("interrupted; repeat the command to resume" in seen.text, "Ctrl-C does not say how to resume")
    trial.run(f"{command} broken", 0)
    trial.run(f"{command} whole", 0)
    for name in ("objects.geojson", "labels.tif", "counts.csv"):
        parts = [(trial.folder / out / "large" / name).read_bytes() for out in ("broken", "whole")]
        trial.check(parts[0] == parts[1], f"{name} differs after Ctrl-C")


def two_processes(trial: Trial) -> None:
    """Two processes share one OUT: every slide is in the summary; one slide is not done twice at once."""
    (folder := trial.folder / "four").mkdir()
    for name in "abcd":
        Image.fromarray(made_tissue(192, 1.0)).save(folder / f"{name}.png")
    both = [trial.start(f"seunet segment four/{names}.png -o shared --no-progress") for names in ("[ab]", "[cd]")]
    trial.check([trial.end(process).code for process in both] == [0, 0], "two processes with slides of their own")
    trial.check(trial.summary("shared") == dict.fromkeys("abcd", "done"), f"summary.csv: {trial.summary('shared')}")
    same = [trial.start("seunet segment four/a.png -o same --no-progress") for _ in range(2)]
    seen = [trial.end(process) for process in same]
    refused = [one for one in seen if one.code == 2]
    trial.check(all(one.code in (0, 2) for one in seen) and len(refused) < 2, "two processes with the same slide")
    trial.check(all("another process is at work there" in one.text for one in refused), "the second is not told why")
    trial.run("seunet segment four -o at-once --workers 2 --no-progress", 0, "4 done")


def no_home(trial: Trial) -> None:
    """Without a home, and with a package that cannot be written, the second run compiles nothing."""
    shutil.copytree(ROOT / "src", trial.folder / "installed", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in (trial.folder / "installed").rglob("*.py")}:
        (folder / "__pycache__").write_text("")  # nothing can be kept beside the source, not even by root
    (trial.folder / "temporary").mkdir()
    Image.fromarray(made_tissue(160, 1.0)).save(trial.folder / "small.png")
    environment = {
        "HOME": NOWHERE,
        "XDG_CACHE_HOME": NOWHERE,
        "NUMBA_CACHE_DIR": f"{NOWHERE}/cache",
        "TMPDIR": str(trial.folder / "temporary"),
        "PYTHONPATH": str(trial.folder / "installed"),
    }
    command = "python -m seunet segment small.png --no-progress -o"
    first, second = (trial.run(f"{command} {out}", 0, **environment) for out in ("homeless", "homeless-again"))
    print(f"processor time: {first.processor_seconds:.0f} s, then {second.processor_seconds:.0f} s\n")
    trial.check(second.processor_seconds < first.processor_seconds / 2, "the second run without a home compiles again")


def little_memory(trial: Trial) -> None:
    """`ulimit -v` of 3 GB is enough, 1 GB is refused in one line."""
    Image.fromarray(made_tissue(160, 1.0)).save(trial.folder / "small.png")
    trial.run("ulimit -v 3000000; seunet segment small.png -o three --no-progress", 0)
    seen = trial.run("ulimit -v 1000000; seunet segment small.png -o one", 4, "raise `ulimit -v`")
    trial.check(seen.text.count("\n") == 1, "too little memory is more than one line")


def full_disk(trial: Trial) -> None:
    """Files that cannot grow stand for a disk that is full."""
    Image.fromarray(made_tissue(160, 1.0)).save(trial.folder / "small.png")
    trial.run("ulimit -f 4; seunet segment small.png -o full --no-progress", 3, "File too large")
    trial.run("seunet segment small.png -o full --no-progress", 0)


def guesses(trial: Trial) -> None:
    """What people type first is answered with what they meant."""
    Image.fromarray(made_tissue(160, 1.0)).save(trial.folder / "small.png")
    trial.run("seunet segmnt small.png", 2, "Did you mean 'segment'?")
    trial.run("seunet segment smal.png -o out", 2, "smal.png: no such file or folder; check the path")
    trial.run("seunet segment small.png -o out -m nucleus", 2, "nuclei")
    seen = trial.run("seunet segment small.png -o out --dask tcp://127.0.0.1:9", 2, "no scheduler answers there")
    trial.check(seen.seconds < 15, f"a dead scheduler takes {seen.seconds:.0f} s")
    trial.run("seunet info nuclei", 0, "not for commercial use")
    program = "import seunet; seunet.create_model('nuclei')"
    trial.run(f"python -c {shlex.quote(program)} 2>&1 | tail -n 1", 0, "seunet.load('nuclei')")


STEPS: dict[str, Callable[[Trial], None]] = {
    step.__name__: step
    for step in (
        good_and_bad,
        nested_names,
        interrupted,
        two_processes,
        no_home,
        little_memory,
        full_disk,
        guesses,
    )
}


def main() -> None:
    """Do every step, or those that are named."""
    parser = BENCHMARK.parser(__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; default: all")
    names = parser.parse_args().steps
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background is begun deaf to Ctrl-C
    figures = {}
    for name in names or STEPS:
        print(f"# {name}: {STEPS[name].__doc__}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            STEPS[name](trial := Trial(Path(folder)))
        figures[name] = {
            "commands": trial.commands,
            "tracebacks": trial.tracebacks,
            "not_as_it_must_be": trial.wrong,
        }
    print(json.dumps(figures, indent=1))
    exit_unless_zero(figures, MUST_BE_ZERO)


if __name__ == "__main__":
    main()
