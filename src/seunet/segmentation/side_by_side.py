"""Many small images on all cores of this machine: several at once, each in a process with one thread.

Threads share one image well where it is large; a small one has parts that only one of them can do (opening, finding
objects, writing).  A process is told an image by one line of JSON and answers with one, so nothing is pickled.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from seunet.errors import ResourceError, StorageError
from seunet.memory import keep_freed_memory
from seunet.models.places import FolderNotUsed
from seunet.segmentation.inputs import Item
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Failure, Result, attempt, said, understood
from seunet.system import memory_bytes

SMALL_BYTES: Final = 8_000_000
"""Files up to this size are done side by side without being asked to: opening them to see their pixels costs more."""
IMAGES_PER_PROCESS: Final = 8
"""To start a process costs as much as some small images."""
PROCESS_BYTES: Final = 2**30
"""What a process may need."""


class Shares(NamedTuple):
    """Which inputs are done at once, and which one after the other, with all threads."""

    together: list[Item]
    after: list[Item]
    processes: int
    threads: int
    """Of each process."""


def shared_out(items: Sequence[Item], choices: Choices, workers: int | None, threads: int | None) -> Shares:
    """As the user asked; if they did not, many small images are done at once on a CPU, all others are not.

    Args:
        workers: processes, for all inputs; None to choose.
        threads: of all processes together; None for those of torch.
    """
    import torch

    cores = threads or int(torch.get_num_threads())
    chosen = workers if workers is not None else 1
    together = list(items) if chosen > 1 else []
    if workers is None and (choices.device, choices.runtime) == ("cpu", "native"):
        small = [item for item in items if item.path.is_file() and item.path.stat().st_size <= SMALL_BYTES]
        chosen = max(1, min(cores, len(small) // IMAGES_PER_PROCESS, memory_bytes() // PROCESS_BYTES))
        together = small if chosen > 1 else []
    names = {item.name for item in together}
    after = [item for item in items if item.name not in names]
    return Shares(together, after, chosen, max(1, cores // chosen))


def side_by_side(
    items: Sequence[Item], out: Path, choices: Choices, processes: int, threads: int = 1
) -> Iterator[Result]:
    """Results as they come.  A disk that is full ends it; a process that dies costs its image and is replaced."""
    todo: SimpleQueue[Item] = SimpleQueue()
    done: SimpleQueue[Result] = SimpleQueue()
    for item in items:
        todo.put(item)
    hands = [_Hand(todo, done, out, choices, threads) for _ in range(min(processes, len(items)))]
    for hand in hands:
        hand.start()
    try:
        for _ in items:
            result = done.get()
            if isinstance(result, Failure) and result.exit_code == StorageError.exit_code:
                raise StorageError(result.line)
            yield result
    finally:
        _empty(todo)
        for hand in hands:
            hand.stop()


class _Hand(Thread):
    """One process, and who gives it one image after the other."""

    def __init__(
        self, todo: SimpleQueue[Item], done: SimpleQueue[Result], out: Path, choices: Choices, threads: int
    ) -> None:
        super().__init__(daemon=True)
        self._todo, self._done, self._threads = todo, done, threads
        self._task = {"out": str(out.absolute()), "choices": choices.model_dump(mode="json")}
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> None:
        while not self._stopped:
            try:
                item = self._todo.get_nowait()
            except Empty:
                return
            self._done.put(self._result(item))

    def stop(self) -> None:
        """An image that is being done is left as it is: the same command resumes it."""
        self._stopped = True
        while self.is_alive():
            if self._process is not None:
                self._process.kill()
            self.join(0.1)  # it may just be starting one
        if self._process is not None:
            self._process.kill()
        self._close()

    def _close(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # what a dead process has not read
                    assert pipe is not None
                    pipe.close()
            self._process.wait()
            self._process = None

    def _result(self, item: Item) -> Result:
        if self._process is None:
            self._process = _started(self._threads)
        assert self._process.stdin is not None, "a pipe"
        assert self._process.stdout is not None, "a pipe"
        task = {**self._task, "path": str(item.path.absolute()), "mpp": item.mpp, "name": item.name}
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if answer:
            return understood(json.loads(answer))
        code = self._process.wait()
        self._close()
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        line = f"{item.path.name}: its process ended ({reason}), for want of memory perhaps; repeat the command"
        return Failure(item.name, f"{line} with --workers 1", ResourceError.exit_code)


def _started(threads: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, str(threads)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _empty(queue: SimpleQueue[Item]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return


def _answered(task: dict[str, Any]) -> Result:
    item = Item(Path(task["path"]), task["mpp"], task["name"])
    try:
        return attempt(item, Path(task["out"]), Choices.model_validate(task["choices"]))
    except StorageError as error:
        return Failure(item.name, " ".join(str(error).split()), error.exit_code)


def serve(threads: int) -> None:
    """What a process does: one image per line of its input, until there is none."""
    import torch

    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; who started this one ends it
    warnings.formatwarning = lambda message, *_: f"note: {message}\n"
    warnings.simplefilter("ignore", FolderNotUsed)  # said by who started this one
    keep_freed_memory()
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        result = _answered(json.loads(line))
        print(said(result), file=answers, flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
