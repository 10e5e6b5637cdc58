"""Many images, one after the other (over a cluster: `cluster.py`): what fails is reported, and the rest is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from seunet.errors import InputError, SeunetError, StorageError
from seunet.progress import Progress, silent
from seunet.results.cohort import summarise
from seunet.segmentation.inputs import Inputs, Item
from seunet.segmentation.one_file import FileResult, segment_file
from seunet.segmentation.options import Choices

EXIT_PART: Final = 5


class Failure(NamedTuple):
    """An input that could not be done, and the line that says why."""

    name: str
    line: str
    exit_code: int


Result = FileResult | Failure
Announce = Callable[[Result], None]


def said(result: NamedTuple) -> str:
    """A result, or what a worker has instead, as a line of JSON for another process."""
    return json.dumps({"kind": type(result).__name__, **result._asdict()})


def understood(fields: dict[str, Any]) -> Result:
    """The way back from `said`."""
    if fields.pop("kind") == Failure.__name__:
        return Failure(**fields)
    return FileResult(fields["name"], fields["state"], tuple(fields["lines"]), fields["row"])


def one_after_the_other(
    items: Sequence[Item], out: Path, choices: Choices, progress: Callable[[Item], Progress] = lambda item: silent
) -> Iterator[Result]:
    """Results as they come.  A disk that is full ends it: the others would fail as well."""
    for item in items:
        yield attempt(item, out, choices, progress(item))


def attempt(item: Item, out: Path, choices: Choices, progress: Progress = silent, wait: bool = False) -> Result:
    """One image; what is wrong with it becomes a line, what is wrong with the disk ends everything.

    With `wait`, another process that is at this image is waited for, and its result taken.
    """
    try:
        return segment_file(item, out, choices, progress, wait)
    except StorageError:
        raise
    except SeunetError as error:
        with suppress(OSError):  # the folders above it go too, until one that holds something
            for parent in list(Path(item.name).parents)[:-1]:
                (out / parent).rmdir()
        line = " ".join(str(error).split())
        where = item.path.name
        return Failure(item.name, line if where in line or item.name in line else f"{where}: {line}", error.exit_code)


class Totals(NamedTuple):
    """How many inputs came to what."""

    done: int
    """Whole results; `before` of them were there already."""
    before: int
    part: int
    failed: int
    exit_code: int
    """0, 5 (in part) or that of the first fault."""

    def __str__(self) -> str:
        before = f" ({self.before} of them before)" if self.before else ""
        rest = [f"{count} {what}" for count, what in ((self.part, "in part"), (self.failed, "failed")) if count]
        return ", ".join([f"{self.done} done{before}", *rest])


def segment_all(inputs: Inputs, out: Path, results: Iterable[Result], announce: Announce) -> Totals:
    """Announce every result and write summary.csv, also when it is stopped on the way."""
    faults = [Failure("", " ".join(str(fault).split()), fault.exit_code) for fault in inputs.faults]
    for fault in faults:
        announce(fault)
    done: list[FileResult] = []
    failed: list[Failure] = []
    try:
        for result in results:
            announce(result)
            if isinstance(result, FileResult):
                done.append(result)
            else:
                failed.append(result)
    except BaseException:
        with suppress(SeunetError, OSError):  # what stopped it is said; a full disk has no room for this either
            _summarised(out, done, failed, faults)
        raise
    _summarised(out, done, failed, faults)
    states = [one.state for one in done]
    part, count = states.count("part"), len(failed) + len(faults)
    code = (EXIT_PART if done else (faults + failed)[0].exit_code) if count else EXIT_PART if part else 0
    return Totals(len(done) - part, states.count("before"), part, count, code)


def _summarised(out: Path, done: list[FileResult], failed: list[Failure], faults: list[Failure]) -> None:
    names = {one.name for one in done}
    summarise(out, names, {one.name: one.line for one in failed}, [one.line for one in faults])


def check_out(out: Path) -> None:
    """Refuse an OUT that cannot be a folder before any work is done."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; choose a folder for OUT")
