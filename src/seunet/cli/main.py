"""The `seunet` command: every verb is parsed here and done in another room.

Heavy imports happen inside the verbs, so that `seunet --help` answers at once.
"""

from __future__ import annotations

import errno
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from seunet import __version__
from seunet.cli.configs import app as configs_app
from seunet.cli.data import app as data_app
from seunet.cli.demo import demo
from seunet.cli.equivariance import equivariance
from seunet.cli.evaluate import evaluate
from seunet.cli.export import export
from seunet.cli.fitting import calibrate, fit_scale
from seunet.cli.info import info, warm_up
from seunet.cli.plot import app as plot_app
from seunet.cli.reproduce import reproduce
from seunet.cli.segment import segment
from seunet.cli.stopping import EXIT_INTERRUPTED, EXIT_TERMINATED, Interrupted, Terminated, listen
from seunet.cli.train import train
from seunet.cli.view import view
from seunet.errors import ResourceError, SeunetError
from seunet.system import address_space_bytes, settle_without_home

EXIT_BUG = 70
DEBUG: Final = "--debug"
LEAST_ADDRESS_SPACE_BYTES: Final = 1_500_000_000
"""Below this, libraries end the process in their own words while they are loaded."""
USAGE_ERROR: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""What the parser raises; some versions of Typer bring a Click of their own."""
PLAINER: Final = {
    "Input should be a valid number, unable to parse string as a number": "must be a number, written like 0.25",
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
}
DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Verbs(TyperGroup):
    """`--debug` counts wherever it stands: it is added to a command that has just failed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As if it stood first."""
        return super().parse_args(ctx, sorted(args, key=lambda argument: argument != DEBUG))


app = typer.Typer(
    cls=Verbs,
    name="seunet",
    help="Segment H&E images at any magnification, whether or not it is known.",
    no_args_is_help=True,
    rich_markup_mode=None,
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
    debug: bool = typer.Option(False, DEBUG, help="Print the traceback of an error before its line."),
) -> None:
    """Options of every verb."""
    allowed = address_space_bytes()
    if allowed is not None and allowed < LEAST_ADDRESS_SPACE_BYTES:
        least = f"{LEAST_ADDRESS_SPACE_BYTES / 1e9:g} GB are the least, slides need more"
        raise ResourceError(f"this shell allows {allowed / 1e9:.2g} GB of memory; {least}; raise `ulimit -v`")


app.command()(demo)
app.command()(segment)
app.command()(view)
app.command()(train)
app.command()(reproduce)
app.command()(evaluate)
app.command()(equivariance)
app.command("fit-scale")(fit_scale)
app.command()(calibrate)
app.command()(info)
app.command()(export)
app.command("warm-up")(warm_up)


def fail(line: str, code: int) -> int:
    """Print the one line that says what went wrong and return the exit code."""
    print(f"seunet: {line}", file=sys.stderr)
    return code


def called(arguments: Sequence[str] | None = None) -> None:
    """Parse and do; an exit code that is not 0 is raised as SystemExit, and what goes wrong as it is."""
    given = None if arguments is None else list(arguments)
    code = get_command(app).main(args=given, prog_name="seunet", standalone_mode=False)
    if isinstance(code, int) and code:
        raise SystemExit(code)


def usage_line(error: Any) -> str:
    """What is wrong with the options, in one line."""
    text = " ".join(error.format_message().split()).rstrip(".")
    for theirs, ours in PLAINER.items():
        text = text.replace(theirs, ours)
    return text if error.ctx is None else f"{text}; see {error.ctx.command_path} --help"


def run(command: Callable[[], object], debug: bool = False) -> int:
    """Run a command; every outcome is an exit code and at most one line (DESIGN: exit codes)."""
    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else fail(str(stop.code), 2)
    except (Interrupted, KeyboardInterrupt) as stop:
        return fail("; ".join(["interrupted", *map(str, stop.args)]), EXIT_INTERRUPTED)
    except Terminated as stop:
        return fail("; ".join(["terminated", *map(str, stop.args)]), EXIT_TERMINATED)
    except typer.Abort:
        return fail("interrupted", EXIT_INTERRUPTED)
    except USAGE_ERROR as error:
        if "\n" in str(error):  # a verb alone: its help
            print(error, file=sys.stderr)
            return 2
        return fail(usage_line(error), 2)
    except Exception as error:  # the last line of defence: a user who did not ask for one never sees a traceback
        if debug:
            traceback.print_exc()
        return fail(*line_and_code(error))
    return 0


def line_and_code(error: Exception) -> tuple[str, int]:
    """What an error says to a user, and the exit code."""
    text = " ".join(str(error).split())
    if isinstance(error, SeunetError):
        return text, error.exit_code
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in text):
        return "out of memory; use a smaller image, tile or batch", 4
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return f"{error.filename or 'a temporary file'}: {error.strerror}; free some space or set TMPDIR", 3
    report = f"please report it with the command you ran and what it prints with {DEBUG}"
    return f"our bug ({type(error).__name__}: {text}); {report}", EXIT_BUG


def main() -> None:
    """The entry point of the `seunet` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a log in plain ASCII has no σ; the message must still arrive
    listen()
    settle_without_home()
    warnings.formatwarning = lambda message, *_: f"note: {message}\n"
    sys.exit(run(called, debug=DEBUG in sys.argv[1:]))


if __name__ == "__main__":
    main()
