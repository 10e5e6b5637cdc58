"""A cohort over a Dask cluster, where workers die, hang, differ from each other and lack a disk.

A slide is one task, of the same code as in one process.  A task is three strings and its result is one (JSON), so
nothing of ours is pickled but the name of a function.  A worker that dies is replaced by Dask and its slide is begun
again elsewhere, where the ledger in OUT lets it go on; whoever is still at it is waited for.

A worker first shows that it is fit: it has our version and weights, and sees the input and OUT, by a file that lies
there for as long as the command runs.  One that is not is named, and its slide goes elsewhere.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import seunet
from seunet.errors import InputError, ResourceError, SeunetError, StorageError
from seunet.memory import keep_freed_memory
from seunet.models.files import shared_model
from seunet.segmentation.inputs import Item
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Failure, Result, attempt, said, understood
from seunet.storage.atomic import write_text

if TYPE_CHECKING:
    from distributed import Client

LOCAL: Final = "local"
CONNECT_SECONDS = 8
WORKERS_SECONDS = 60
"""How long the first worker is waited for: those of a job are started after its scheduler."""
SILENCE: Final = "12s"
"""After so long without an answer of the machine it runs on, a scheduler is gone; Dask takes no less than 11."""
RETRIES: Final = 3
"""Workers that a slide may take down before it is given up: one that kills every worker must not stop the cohort."""
MOST_REFUSALS: Final = 20
"""Of one slide, in case workers come and go."""


class Passport(NamedTuple):
    """What a worker must agree with."""

    seunet: str
    model: str
    weights_sha256: str
    out: str
    token: str
    """A file in `out`: who sees it has the same folder there."""


class Refusal(NamedTuple):
    """A worker that cannot do a slide, and the line that says why."""

    worker: str
    line: str
    exit_code: int


def over_cluster(
    items: Sequence[Item],
    out: Path,
    choices: Choices,
    address: str,
    workers: int | None = None,
    task: Callable[[str, str, str], str] | None = None,
) -> Iterator[Result]:
    """Results as they come, in any order; `task` is what a worker does, if it is not `work`."""
    choices = choices.model_copy(update={"model": _findable(choices.model)})
    with _client(address, workers) as client, _token(out) as token:
        weights = shared_model(choices.model).weights_sha256
        passport = Passport(seunet.__version__, choices.model, weights, str(out.absolute()), token)
        _wait_for_worker(client, address)
        cohort = _Cohort(client, address, passport, choices, task or work)
        yield from cohort.results(items)


class _Cohort:
    """The slides that are out, and which worker has refused what."""

    def __init__(
        self, client: Client, address: str, passport: Passport, choices: Choices, task: Callable[[str, str, str], str]
    ) -> None:
        self.client, self.address, self.passport, self.task = client, address, passport, task
        self.choices = choices.model_dump_json()
        self.refusals: dict[str, list[Refusal]] = {}
        self.named: set[str] = set()

    def results(self, items: Sequence[Item]) -> Iterator[Result]:
        from distributed import as_completed

        out = {self._sent(item): item for item in items}
        coming = as_completed(list(out), with_results=True, raise_errors=False)
        for future, answer in coming:
            item = out.pop(future)
            if future.status == "cancelled":
                raise ResourceError(
                    f"--dask {self.address}: the scheduler is gone; start it again and repeat the command "
                    "(finished results are kept)"
                )
            if future.status != "finished":
                yield _given_up(item, future.exception())
                continue
            answered = _answer(json.loads(answer))
            if isinstance(answered, Refusal):
                elsewhere = self._sent_elsewhere(item, answered)
                if elsewhere is None:
                    yield self._undone(item)
                else:
                    out[elsewhere] = item
                    coming.add(elsewhere)
                continue
            yield self._with_notes(item, answered)

    def _sent(self, item: Item, to: Sequence[str] = ()) -> Any:
        number = len(self.refusals.get(item.name, ()))
        passport = json.dumps(self.passport._asdict())
        return self.client.submit(
            self.task,
            _item_text(item),
            passport,
            self.choices,
            key=f"seunet-{self.passport.token}-{item.name}-{number}",
            workers=list(to) or None,
            # Those that are left may die as well: then it is better refused again than waiting for ever.
            allow_other_workers=bool(to),
        )

    def _sent_elsewhere(self, item: Item, refusal: Refusal) -> Any:
        """The slide as a new task for workers that have not refused it; None if there are none."""
        mine = self.refusals.setdefault(item.name, [])
        mine.append(refusal)
        refused = {one.worker for one in mine}
        left = [worker for worker in self.client.scheduler_info(n_workers=-1)["workers"] if worker not in refused]
        return self._sent(item, left) if left and len(mine) < MOST_REFUSALS else None

    def _undone(self, item: Item) -> Failure:
        """What no worker can do; a disk that is full for all of them ends everything, as in one process."""
        last = self.refusals[item.name][-1]
        if last.exit_code == StorageError.exit_code:
            raise StorageError(last.line)
        return Failure(item.name, f"{item.path.name}: no worker can do it: {last.line}", last.exit_code)

    def _with_notes(self, item: Item, result: Result) -> Result:
        """The result and, once per worker, who refused it and why."""
        lines = []
        for refusal in self.refusals.get(item.name, ()):
            if refusal.worker not in self.named:
                self.named.add(refusal.worker)
                lines.append(f"{refusal.line} (done by another worker)")
        return result._replace(lines=(*lines, *result.lines)) if isinstance(result, FileResult) and lines else result


def work(item: str, passport: str, choices: str) -> str:
    """What a worker does: one slide, if it is fit for it."""
    keep_freed_memory()
    fields = json.loads(item)
    todo = Item(Path(fields["path"]), fields["mpp"], fields["name"])
    wanted = Passport(**json.loads(passport))
    result: Result | Refusal
    if wanted.token in _full:
        result = _refusal(_full[wanted.token], StorageError.exit_code)
    elif (reason := unfit_because(wanted, todo.path)) is not None:
        result = _refusal(reason, InputError.exit_code)
    else:
        try:
            result = attempt(todo, Path(wanted.out), Choices.model_validate_json(choices), wait=True)
        except StorageError as error:
            _full[wanted.token] = " ".join(str(error).split())
            result = _refusal(_full[wanted.token], error.exit_code)
    return said(result)


_full: dict[str, str] = {}
"""Of a worker: the commands for which it could not write, and why; their further slides are left to others at once."""


def unfit_because(wanted: Passport, path: Path) -> str | None:
    """Why this process cannot do the slide at `path`; None if it can."""
    if seunet.__version__ != wanted.seunet:
        return f"has seunet {seunet.__version__}, the command {wanted.seunet}; install the same on all nodes"
    if not Path(wanted.out, wanted.token).is_file():
        return f"does not see {wanted.out} as the command does; share the folder under the same path"
    if not path.is_file():
        return f"does not see {path}; share the folder under the same path"
    try:
        own = shared_model(wanted.model).weights_sha256
    except SeunetError as error:
        return f"cannot load the model ({' '.join(str(error).split())})"
    if own != wanted.weights_sha256:
        return (
            f"has other weights as {wanted.model} (sha256 {own[:12]}, the command {wanted.weights_sha256[:12]}); "
            "copy the model to all nodes"
        )
    return None


def _refusal(reason: str, exit_code: int) -> Refusal:
    from distributed import get_worker

    address = get_worker().address
    return Refusal(address, f"worker {address} on {socket.gethostname()}: {reason}", exit_code)


def _given_up(item: Item, error: BaseException | None) -> Failure:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    remedy = "install seunet on all nodes" if isinstance(error, ImportError) else "run it again"
    return Failure(
        item.name, f"{item.path.name}: given up by the cluster ({reason}); {remedy}", ResourceError.exit_code
    )


def _findable(model: str) -> str:
    """A folder by its whole path: workers are elsewhere."""
    return os.path.abspath(model) if os.path.isdir(model) else model


def _item_text(item: Item) -> str:
    return json.dumps({"path": str(item.path.absolute()), "mpp": item.mpp, "name": item.name})


def _answer(fields: dict[str, Any]) -> Result | Refusal:
    if fields["kind"] != Refusal.__name__:
        return understood(fields)
    del fields["kind"]
    return Refusal(**fields)


@contextmanager
def _token(out: Path) -> Iterator[str]:
    """The name of a file that lies in OUT until the block ends."""
    name = f".cluster-{uuid.uuid4().hex[:12]}"
    write_text(out / name, "")
    try:
        yield name
    finally:
        with suppress(OSError):
            (out / name).unlink()


def _wait_for_worker(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError:
        reason = f"no worker has joined the scheduler within {WORKERS_SECONDS} s"
        raise InputError(f"--dask {address}: {reason}; start workers") from None


@contextmanager
def _client(address: str, workers: int | None) -> Iterator[Client]:
    try:
        import distributed
    except ImportError:
        raise InputError("--dask needs Dask distributed; pip install distributed") from None
    import dask

    # A slide is longer than Dask expects a task to be, and each worker has its threads for itself.
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": RETRIES,
            "distributed.admin.tick.limit": "1h",
            "distributed.comm.timeouts.tcp": SILENCE,
            # A slide that waits at a worker would be blamed for its death as well.
            "distributed.scheduler.worker-saturation": 1.0,
            # Where the cores are busy a worker may take long to come back; given up, it is not replaced.
            "distributed.deploy.lost-worker-timeout": "1h",
        }
    )
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
