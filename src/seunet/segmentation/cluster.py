"""A cohort over a Dask cluster: one task a slide, the same code as in one process.

A task is two strings and its result is one (JSON), so nothing of ours is pickled but the name of a function.  A worker
that dies is replaced by Dask and its slide is begun again elsewhere, where the ledger in OUT lets it go on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seunet.errors import InputError, ResourceError, StorageError
from seunet.segmentation.inputs import Item
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Failure, Result, attempt

if TYPE_CHECKING:
    from distributed import Client

LOCAL: Final = "local"
CONNECT_SECONDS = 20
RETRIES: Final = 3
"""Workers that a slide may take down before it is given up: one that kills every worker must not stop the cohort."""


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
    from seunet.memory import keep_freed_memory

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
        raise InputError("--dask needs Dask distributed; pip install 'seunet[cluster]'") from None
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
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {address}: no scheduler answers there ({type(error).__name__})") from None
    with client:
        yield client
