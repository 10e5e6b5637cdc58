"""Many images, one after the other or over a Dask cluster: what fails is reported, and the rest is done.

On a cluster a slide is one task, of the same code as in one process.  A task is two strings and its result is one
(JSON), so nothing of ours is pickled but the name of a function.  A worker that dies is replaced by Dask and its slide
is begun again elsewhere, where the ledger in OUT lets it go on.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seunet.errors import InputError, ResourceError, SeunetError, StorageError
from seunet.memory import keep_freed_memory
from seunet.progress import Progress
from seunet.results.cohort import summarise
from seunet.segmentation.inputs import Inputs, Item
from seunet.segmentation.one_file import FileResult, segment_file
from seunet.segmentation.options import Choices

if TYPE_CHECKING:
    from distributed import Client

EXIT_PART: Final = 5
LOCAL: Final = "local"
CONNECT_SECONDS = 8
RETRIES: Final = 3
"""Workers that a slide may take down before it is given up: one that kills every worker must not stop the cohort."""


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
        with suppress(OSError):  # the folders above it go too, until one that holds something
            for parent in list(Path(item.name).parents)[:-1]:
                (out / parent).rmdir()
        line = " ".join(str(error).split())
        where = item.path.name
        return Failure(item.name, line if where in line or item.name in line else f"{where}: {line}", error.exit_code)


def over_cluster(
    items: Sequence[Item], out: Path, choices: Choices, address: str, workers: int | None = None
) -> Iterator[Result]:
    """Results as they come, in any order."""
    with _client(address, workers) as client:
        from distributed import as_completed

        tasks = {
            client.submit(
                work, _item_text(item), str(out.absolute()), choices.model_dump_json(), key=f"seunet-{item.name}"
            ): item
            for item in items
        }
        for future, result in as_completed(list(tasks), with_results=True, raise_errors=False):
            item = tasks[future]
            if future.status == "finished":
                yield _result(json.loads(result))
            else:
                reason = f"{type(future.exception()).__name__}: {future.exception()}"
                line = f"{item.path.name}: given up by the cluster ({' '.join(reason.split())[:200]}); run it again"
                yield Failure(item.name, line, ResourceError.exit_code)


def work(item: str, out: str, choices: str) -> str:
    """What a worker does: one slide."""
    keep_freed_memory()
    fields = json.loads(item)
    todo = Item(Path(fields["path"]), fields["mpp"], fields["name"])
    result: Result
    try:
        result = attempt(todo, Path(out), Choices.model_validate_json(choices))
    except StorageError as error:
        result = Failure(todo.name, " ".join(str(error).split()), error.exit_code)
    return json.dumps({"kind": type(result).__name__, **result._asdict()})


def _item_text(item: Item) -> str:
    return json.dumps({"path": str(item.path.absolute()), "mpp": item.mpp, "name": item.name})


def _result(fields: dict[str, Any]) -> Result:
    if fields.pop("kind") == Failure.__name__:
        return Failure(**fields)
    return FileResult(fields["name"], fields["state"], tuple(fields["lines"]), fields["row"])


@contextmanager
def _client(address: str, workers: int | None) -> Iterator[Client]:
    try:
        import distributed
    except ImportError:
        raise InputError("--dask needs Dask distributed; pip install distributed") from None
    import dask

    # A slide is longer than Dask expects a task to be, and each worker has its threads for itself.
    dask.config.set({"distributed.scheduler.allowed-failures": RETRIES, "distributed.admin.tick.limit": "1h"})
    if address == LOCAL:
        with (
            distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    with _connected(address) as client:
        yield client


def _connected(address: str) -> Client:
    """A client of the scheduler there, within a time limit: another server may accept and then keep silent."""
    import distributed

    outcome: list[Client | Exception] = [TimeoutError()]

    def connect() -> None:
        try:
            outcome[0] = distributed.Client(address, timeout=CONNECT_SECONDS)
        except Exception as error:  # another server answers anything: its web page, read as a length
            outcome[0] = error

    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(CONNECT_SECONDS + 1)
    found = outcome[0]
    if isinstance(found, Exception):
        reason = f"no scheduler answers there ({type(found).__name__})"
        raise InputError(f"--dask {address}: {reason}; start one or correct it")
    return found


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
