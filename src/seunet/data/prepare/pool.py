"""Worker processes that can be killed: a decoder that hangs costs one image, not the run."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from seunet.data.prepare.one_image import Job
from seunet.errors import InputError, ResourceError, SeunetError, StorageError
from seunet.limits import MAX_JOB_BYTES, MAX_JOB_SECONDS
from seunet.storage.sandbox import Child


class JobOutcome(NamedTuple):
    """What became of the job number `number`: a record, or an error."""

    number: int
    record: dict[str, Any] | None
    error: SeunetError | None
    peak_bytes: int
    seconds: float


class Worker(Child):
    """One process; `ask` gives it a job and at most `limit_seconds`."""

    def __init__(self, limit_seconds: float = MAX_JOB_SECONDS, limit_bytes: int = MAX_JOB_BYTES) -> None:
        super().__init__("seunet.data.prepare.worker", limit_bytes)
        self.limit_seconds = limit_seconds

    def ask(self, index: int, job: Job) -> JobOutcome:
        """Do `job`; afterwards the worker may no longer be `alive`."""
        started = time.monotonic()
        reply = self.exchange({**job}, self.limit_seconds)
        seconds = time.monotonic() - started
        name = os.path.basename(job["image"])
        if isinstance(reply, SeunetError):
            self.stop()
            return JobOutcome(index, None, type(reply)(f"{name}: {reply}"), 0, seconds)
        peak = int(reply["peak_bytes"])
        if "record" in reply:
            return JobOutcome(index, reply["record"], None, peak, seconds)
        return JobOutcome(index, None, _fault(reply["fault"], int(reply["exit_code"]), name), peak, seconds)


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    limit_seconds: float = MAX_JOB_SECONDS,
    limit_bytes: int = MAX_JOB_BYTES,
) -> Generator[JobOutcome, None, None]:
    """Outcomes as they come, from `workers` processes; leaving the loop early ends them."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[JobOutcome | None] = queue.SimpleQueue()
    for index in range(len(jobs)):
        todo.put(index)
    crew: list[Worker] = []
    ending = threading.Event()

    def work() -> None:
        worker: Worker | None = None
        with suppress(queue.Empty, OSError, ValueError):  # no job left, no process to be had, or stopped from outside
            while not ending.is_set():
                index = todo.get_nowait()
                if worker is None or not worker.alive:
                    worker = Worker(limit_seconds, limit_bytes)
                    crew.append(worker)
                done.put(worker.ask(index, jobs[index]))
        done.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(jobs)))]
    try:
        for thread in threads:
            thread.start()
        yield from _collect(done, len(jobs), len(threads))
    finally:
        ending.set()
        for worker in list(crew):
            worker.stop()
        for thread in threads:
            thread.join(timeout=5)


def _collect(done: queue.SimpleQueue[JobOutcome | None], expected: int, running: int) -> Iterator[JobOutcome]:
    while expected:
        outcome = done.get()
        if outcome is not None:
            expected -= 1
            yield outcome
            continue
        running -= 1
        if not running and expected:
            raise ResourceError(f"{expected} images left and no worker process could be run; use fewer --workers")


def _fault(text: str, exit_code: int, name: str) -> SeunetError:
    if exit_code == ResourceError.exit_code:
        return ResourceError(f"{name}: {text}; use a smaller image")
    kinds: dict[int, type[SeunetError]] = {2: InputError, 3: StorageError}
    return kinds.get(exit_code, SeunetError)(text)
