"""The command line: help, version, exit codes, and what importing costs."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from seunet import __version__
from seunet.cli.main import app, run
from seunet.cli.stopping import Interrupted, Terminated
from seunet.errors import InputError, ResourceError, StorageError
from support.cli import seunet

SEUNET = Path(sys.executable).with_name("seunet")


def seunet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seunet.cli.main", *arguments], capture_output=True, text=True, timeout=600
    )


def test_help_names_the_verbs_and_answers_in_half_a_second_of_processor_time() -> None:
    best = float("inf")
    for _ in range(5):
        before = os.times()
        result = seunet_command("--help")
        after = os.times()
        best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
    assert result.returncode == 0
    assert "demo" in result.stdout
    assert best < 0.5


def test_the_version_is_printed() -> None:
    assert seunet_command("--version").stdout.strip() == f"seunet {__version__}"


def test_a_terminal_without_greek_letters_still_gets_the_message() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    program = "import sys; from seunet.cli import main; main.called = lambda: print('σ = 2'); main.main()"
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"? = 2\n", b"")


def test_an_unknown_verb_is_a_usage_error() -> None:
    result = seunet_command("segmnt")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_importing_seunet_loads_no_plotting_slide_web_or_compiler_library() -> None:
    program = "import sys, seunet; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "torch",
        "numba",
        "matplotlib",
        "PIL",
        "openslide",
        "tifffile",
        "zarr",
        "starlette",
        "uvicorn",
        "dask",
        "cv2",
    }
    assert not heavy & set(output)


def test_creating_a_model_loads_no_plotting_slide_or_web_library() -> None:
    program = "import sys, seunet; seunet.create_model('seunet'); print(' '.join(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"matplotlib", "PIL", "openslide", "tifffile", "zarr", "starlette", "uvicorn", "dask"} & set(output)


def test_an_unknown_attribute_of_the_package_is_an_attribute_error() -> None:
    import seunet

    with pytest.raises(AttributeError, match="module 'seunet' has no attribute 'segmnt'"):
        _ = seunet.segmnt


def raiser(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.png: not an image;\nuse a PNG"), 2, "seunet: a.png: not an image; use a PNG\n"),
        (StorageError("out: disk full"), 3, "seunet: out: disk full\n"),
        (ResourceError("needs 90 GiB"), 4, "seunet: needs 90 GiB\n"),
        (MemoryError(), 4, "seunet: out of memory; use a smaller image, tile or batch\n"),
        (KeyboardInterrupt(), 130, "seunet: interrupted\n"),
        (Interrupted("repeat it"), 130, "seunet: interrupted; repeat it\n"),
        (Terminated(), 143, "seunet: terminated\n"),
        (
            ZeroDivisionError("division by zero"),
            70,
            "seunet: our bug (ZeroDivisionError: division by zero); please report it with the command you ran and what "
            "it prints with --debug\n",
        ),
        (RuntimeError("can't allocate memory: 9 GB"), 4, "seunet: out of memory; use a smaller image, tile or batch\n"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            3,
            "seunet: a temporary file: No space left on device; free some space or set TMPDIR\n",
        ),
        (SystemExit(5), 5, ""),
        (SystemExit(None), 0, ""),
    ],
)
def test_every_outcome_is_an_exit_code_and_at_most_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(lambda: raiser(error)) == code
    assert capsys.readouterr().err == line


def test_a_termination_signal_ends_with_143_and_no_traceback() -> None:
    program = (
        "import time, sys; from seunet.cli import main\n"
        "main.listen()\n"
        "print('ready', flush=True); sys.exit(main.run(lambda: time.sleep(60)))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 143
    assert errors == "seunet: terminated\n"


def test_debug_prints_the_traceback_before_the_line_wherever_it_stands() -> None:
    for arguments in (("--debug", "info", "none.png"), ("info", "none.png", "--debug")):
        ran = seunet_command(*arguments)
        assert ran.returncode == 2
        assert ran.stderr.startswith("Traceback (most recent call last)")
        assert ran.stderr.splitlines()[-1].startswith("seunet: none.png: no such file, model folder or model")
    assert seunet_command("info", "none.png").stderr.count("\n") == 1


def test_a_shell_that_allows_too_little_memory_is_one_line_and_exit_4() -> None:
    command = f"ulimit -v 1000000; exec {sys.executable} -m seunet info nuclei"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=600)
    line = "seunet: this shell allows 1 GB of memory; 1.5 GB are the least, slides need more; raise `ulimit -v`\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (4, "", line)


def verbs(command: Any, name: str = "seunet") -> Iterator[tuple[str, str]]:
    """The name and the help of every verb."""
    yield name, command.get_help(command.context_class(command, info_name=name))
    for inner in getattr(command, "commands", {}).values():
        yield from verbs(inner, f"{name} {inner.name}")


def test_flags_are_shown_without_a_type() -> None:
    found = dict(verbs(get_command(app)))
    assert len(found) > 10
    for name, text in found.items():
        assert "<bool>" not in text, name
    assert "--strict                        Stop a slide at its first unreadable region." in found["seunet segment"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_verbs_and_options(shell: str) -> None:
    named = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # tests may run below no shell at all
    command = [SEUNET, "--show-completion", shell]
    script = subprocess.run(command, env=named, capture_output=True, text=True, timeout=600)
    assert script.returncode == 0
    assert f"_SEUNET_COMPLETE=complete_{shell}" in script.stdout
    asked = {
        "bash": {"COMP_WORDS": "seunet seg", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "seunet seg"},
        "fish": {"_TYPER_COMPLETE_ARGS": "seunet seg", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = os.environ | asked | {"_SEUNET_COMPLETE": f"complete_{shell}"}
    found = subprocess.run([SEUNET], env=environment, capture_output=True, text=True, timeout=600)
    assert "segment" in found.stdout
    assert "train" not in found.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("segmnt",), "No such command 'segmnt'. Did you mean 'segment'?; see seunet --help"),
        (("segment", "x.png"), "Missing option '-o' / '--out'; see seunet segment --help"),
        (("segment", "x.png", "-o", "out", "--mppp", 3), "No such option: --mppp"),
        (("segment", "x.png", "-o", "out", "--mpp", "0,25"), "Invalid value for '--mpp': "),
        (("data", "prepare", "folder"), "Missing argument "),
    ],
)
def test_options_that_are_wrong_are_one_line_and_exit_code_2(arguments: tuple[object, ...], line: str) -> None:
    ran = seunet(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"seunet: {line}")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith(" --help\n")


def test_a_verb_of_verbs_alone_shows_what_it_has() -> None:
    ran = seunet("data")
    assert ran.code == 2
    assert "prepare" in ran.out + ran.err
