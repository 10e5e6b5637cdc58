"""Many images, one after the other or over a cluster: what cannot be done is told, and the rest is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from seunet.errors import InputError, SeunetError, StorageError
from seunet.progress import Progress
from seunet.results.counts import write_summary
from seunet.segmentation.inputs import Inputs, Item
from seunet.segmentation.one_file import FileResult, segment_file
from seunet.segmentation.options import Choices

SUMMARY_NAME: Final = "summary.csv"
EXIT_PART: Final = 5


class Failure(NamedTuple):
    """An input that could not be done, and the line that says why."""

    name: str
    line: str
    exit_code: int


Result = FileResult | Failure
Announce = Callable[[Result], None]


def one_after_the_other(
    items: Sequence[Item], out: Path, choices: Choices, progress: Callable[[Item], Progress | None]
) -> Iterator[Result]:
    """Results as they come.  A disk that is full ends it: the others would fail as well."""
    for item in items:
        yield attempt(item, out, choices, progress(item))


def attempt(item: Item, out: Path, choices: Choices, progress: Progress | None = None) -> Result:
    """One image; what is wrong with it becomes a line, what is wrong with the disk ends everything."""
    try:
        return segment_file(item, out, choices, progress)
    except StorageError:
        raise
    except SeunetError as error:
        line = " ".join(str(error).split())
        where = item.path.name
        return Failure(item.name, line if where in line or item.name in line else f"{where}: {line}", error.exit_code)


def segment_all(inputs: Inputs, out: Path, results: Iterable[Result], announce: Announce) -> int:
    """Announce every result and write summary.csv; the exit code is 0, 5 (in part) or that of the first fault."""
    faults = [Failure("", " ".join(str(fault).split()), fault.exit_code) for fault in inputs.faults]
    for fault in faults:
        announce(fault)
    done: list[FileResult] = []
    for result in results:
        announce(result)
        if isinstance(result, FileResult):
            done.append(result)
        else:
            faults.append(result)
    if done:
        write_summary(out / SUMMARY_NAME, [one.row for one in done])
    if not faults:
        return EXIT_PART if any(one.state == "part" for one in done) else 0
    return EXIT_PART if done else faults[0].exit_code


def check_out(out: Path) -> None:
    """Refuse an OUT that cannot be a folder before any work is done."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; choose a folder for OUT")
