"""A Dask scheduler and workers as processes of their own, with the faults of real ones.

Workers are forked from one process that has imported what they need, so that a further one costs milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def _environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


@contextmanager
def scheduler() -> Iterator[tuple[str, int]]:
    """Its address and process number; it is ended with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--no-dashboard"],
        # Without stealing, each worker gets its share of the tasks, however slow the machine is.
        env={**_environment(), "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"tcp://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def take_for_dead(address: str, pid: int) -> None:
    """Let the scheduler give up a worker, as it does with one that it has not heard of for five minutes."""
    import distributed

    async def remove(dask_scheduler: Any) -> None:
        await dask_scheduler.remove_worker(dask_scheduler.aliases[str(pid)], stimulus_id="silent")

    with distributed.Client(address, set_as_default=False) as client:
        client.run_on_scheduler(remove)


class Workers:
    """Makes workers on demand; all are ended with it."""

    def __init__(self) -> None:
        self._forge = subprocess.Popen(
            [sys.executable, "-m", "support.dask_cluster"],
            env=_environment(),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pids: list[int] = []

    def start(self, address: str, **fault: Any) -> int:
        """The process number of a new worker that has joined.

        `fault`: the `folder` it runs in, the `version` it says it has, the `file_bytes` it may write to one file.
        """
        assert self._forge.stdin is not None
        assert self._forge.stdout is not None
        self._forge.stdin.write(json.dumps({"address": address, **fault}) + "\n")
        self._forge.stdin.flush()
        self.pids.append(int(self._forge.stdout.readline()))
        return self.pids[-1]

    def end(self) -> None:
        """End those that are left."""
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.pids.clear()

    def close(self) -> None:
        self.end()
        self._forge.kill()
        self._forge.communicate()


def _forge() -> None:

    from seunet.segmentation import over_cluster  # noqa: F401  (what every worker needs)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nothing, standard)
            _run_worker(answer, **json.loads(line))
            os._exit(0)


def _run_worker(
    answer: int, address: str, folder: str | None = None, version: str | None = None, file_bytes: int | None = None
) -> None:
    import seunet

    if folder is not None:
        os.chdir(folder)
    if version is not None:
        seunet.__version__ = version
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    async def serve() -> None:
        from distributed import Worker

        scratch = tempfile.mkdtemp(prefix="seunet-dask-")
        async with Worker(address, name=str(os.getpid()), nthreads=1, local_directory=scratch) as worker:
            os.write(answer, f"{os.getpid()}\n".encode())
            os.close(answer)
            await worker.finished()

    asyncio.run(serve())


if __name__ == "__main__":
    _forge()
