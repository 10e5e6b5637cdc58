"""A crew of worker processes that can be killed: a decoder that hangs costs one image, not the run."""

from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

from seunet.data.jobs import Job
from seunet.errors import InputError, ResourceError, SeunetError, StorageError
from seunet.limits import MAX_JOB_BYTES, MAX_JOB_SECONDS


class Outcome(NamedTuple):
    """What became of the job number `number`: a record, or an error."""

    number: int
    record: dict[str, Any] | None
    error: SeunetError | None
    peak_bytes: int
    seconds: float


class Worker:
    """One process; `ask` gives it a job and at most `limit_seconds`."""

    def __init__(self, limit_seconds: float = MAX_JOB_SECONDS, limit_bytes: int = MAX_JOB_BYTES) -> None:
        self.limit_seconds = limit_seconds
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}
        # -P: a file named numpy.py in the user's folder is not imported
        command = [sys.executable, "-P", "-m", "seunet.data.worker", str(limit_bytes), str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._log.close()
            raise
        self.alive = True
        self.pid = self._process.pid

    def ask(self, index: int, job: Job) -> Outcome:
        """Do `job`; afterwards the worker may no longer be `alive`."""
        started = time.monotonic()
        reply = self._exchange(json.dumps(job).encode() + b"\n")
        seconds = time.monotonic() - started
        name = os.path.basename(job["image"])
        if isinstance(reply, SeunetError):
            self.stop()
            return Outcome(index, None, type(reply)(f"{name}: {reply}"), 0, seconds)
        peak = int(reply["peak_bytes"])
        if "record" in reply:
            return Outcome(index, reply["record"], None, peak, seconds)
        return Outcome(index, None, _fault(reply["fault"], int(reply["exit_code"]), name), peak, seconds)

    def _exchange(self, request: bytes) -> dict[str, Any] | SeunetError:
        stdin, stdout = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        try:
            stdin.write(request)
        except BrokenPipeError:
            return self._death()
        deadline = time.monotonic() + self.limit_seconds
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    return InputError(f"not decoded within {self.limit_seconds:g} s; export it again or leave it out")
                chunk = os.read(stdout.fileno(), 1 << 16)
                if not chunk:
                    return self._death()
                received += chunk
        reply: dict[str, Any] = json.loads(received)
        return reply

    def _death(self) -> SeunetError:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode(errors="replace").strip().splitlines()
        last = lines[-1].strip() if lines else f"exit code {code}"
        if "MemoryError" in last or "allocate" in last or code == -9:
            return ResourceError("its worker ran out of memory; use a smaller image")
        if code < 0:
            return InputError(f"its decoder crashed (signal {-code}); export the file again or leave it out")
        return SeunetError(f"worker ended unexpectedly ({last[:200]}); please report it with the file")

    def stop(self) -> None:
        """End the process at once."""
        if self.alive:
            self.alive = False
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._log):
                if pipe is not None:
                    pipe.close()


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    limit_seconds: float = MAX_JOB_SECONDS,
    limit_bytes: int = MAX_JOB_BYTES,
) -> Generator[Outcome, None, None]:
    """Outcomes as they come, from `workers` processes; leaving the loop early ends them."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
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


def _collect(done: queue.SimpleQueue[Outcome | None], expected: int, running: int) -> Iterator[Outcome]:
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
