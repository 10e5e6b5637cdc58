"""The command line: help, version, exit codes, and what importing costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from seunet import __version__
from seunet.cli.main import Terminated, run
from seunet.errors import InputError, ResourceError, StorageError


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
    program = (
        "import sys; from seunet.cli import main; main.get_command = lambda app: lambda: print('σ = 2'); main.main()"
    )
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
        (Terminated(), 143, "seunet: terminated\n"),
        (
            ZeroDivisionError("division by zero"),
            70,
            "seunet: our bug (ZeroDivisionError: division by zero); please report it with the command you ran\n",
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
        "import signal; signal.signal(signal.SIGTERM, main._on_terminate)\n"
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
