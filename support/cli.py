"""The command line, run in this process: exit code, output, errors."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from seunet.cli import called, run


class Ran(NamedTuple):
    """What a user sees."""

    code: int
    out: str
    err: str


def seunet(*arguments: object) -> Ran:
    """Run `seunet ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(lambda: called([str(argument) for argument in arguments]))
    return Ran(code, out.getvalue(), err.getvalue())
