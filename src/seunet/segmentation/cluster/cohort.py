"""The slides that are out at workers, what comes back, and what is sent elsewhere."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import seunet
from seunet.errors import ResourceError, StorageError
from seunet.models.files import shared_model
from seunet.segmentation.cluster.connection import connected, wait_for_worker
from seunet.segmentation.cluster.worker import Passport, Refusal, item_text, understood_answer, work
from seunet.segmentation.inputs import Item
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Failure, Result
from seunet.storage.atomic import write_text

if TYPE_CHECKING:
    from distributed import Client

MOST_REFUSALS: Final = 20
"""Of one slide, in case workers come and go."""


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
    with connected(address, workers) as client, _token(out) as token:
        weights = shared_model(choices.model).weights_sha256
        passport = Passport(seunet.__version__, choices.model, weights, str(out.absolute()), token)
        wait_for_worker(client, address)
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
            answered = understood_answer(answer)
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
            item_text(item),
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


def _given_up(item: Item, error: BaseException | None) -> Failure:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    remedy = "install seunet on all nodes" if isinstance(error, ImportError) else "run it again"
    return Failure(
        item.name, f"{item.path.name}: given up by the cluster ({reason}); {remedy}", ResourceError.exit_code
    )


def _findable(model: str) -> str:
    """A folder by its whole path: workers are elsewhere."""
    return os.path.abspath(model) if os.path.isdir(model) else model


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
