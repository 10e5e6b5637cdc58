"""The `seunet` command: every verb is parsed here and done in another room.

Heavy imports happen inside the verbs, so that `seunet --help` answers at once.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import typer
from typer.main import get_command

from seunet import __version__
from seunet.cli.configs import app as configs_app
from seunet.cli.data import app as data_app
from seunet.cli.demo import demo
from seunet.cli.equivariance import equivariance
from seunet.cli.evaluate import evaluate
from seunet.cli.info import info
from seunet.cli.plot import app as plot_app
from seunet.cli.reproduce import reproduce
from seunet.cli.segment import segment
from seunet.cli.train import train
from seunet.errors import SeunetError

EXIT_BUG = 70
EXIT_TERMINATED = 143

app = typer.Typer(
    name="seunet",
    help="Segment H&E images at any magnification, whether or not it is known.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(configs_app, name="configs")
app.add_typer(plot_app, name="plot")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"seunet {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of every verb."""


app.command()(demo)
app.command()(segment)
app.command()(train)
app.command()(reproduce)
app.command()(evaluate)
app.command()(equivariance)
app.command()(info)


class Terminated(BaseException):
    """SIGTERM, as an exception: `finally` blocks run and nothing half-written stays."""


def _on_terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def fail(line: str, code: int) -> int:
    """Print the one line that says what went wrong and return the exit code."""
    print(f"seunet: {line}", file=sys.stderr)
    return code


def run(command: Callable[[], object]) -> int:
    """Run a command; every outcome is an exit code and at most one line (DESIGN: exit codes)."""
    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else fail(str(stop.code), 2)
    except SeunetError as error:
        return fail(" ".join(str(error).split()), error.exit_code)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except Terminated:
        return fail("terminated", EXIT_TERMINATED)
    except MemoryError:
        return fail("out of memory; use a smaller image, tile or batch", 4)
    except Exception as error:  # the last line of defence: a user never sees a traceback
        return fail(f"our bug ({type(error).__name__}: {error}); please report it with the command you ran", EXIT_BUG)
    return 0


def main() -> None:
    """The entry point of the `seunet` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a log in plain ASCII has no σ; the message must still arrive
    signal.signal(signal.SIGTERM, _on_terminate)
    sys.exit(run(get_command(app)))


if __name__ == "__main__":
    main()
