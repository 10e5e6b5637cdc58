"""A process that can be killed: one JSON line in, one JSON line out, pixels in bytes that both hold.  No pickles."""

from __future__ import annotations

import json
import mmap
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError, ResourceError, SeunetError
from seunet.memory import peak_bytes
from seunet.system import cap_memory


class Child:
    """`python -m MODULE LIMIT_BYTES PARENT ARGUMENTS…`, which answers requests (by `confine` and `serve`)."""

    def __init__(self, module: str, limit_bytes: int, arguments: Sequence[str] = (), files: Sequence[int] = ()) -> None:
        """`files`: file descriptors that it inherits under the same numbers."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}
        # -P: a file named numpy.py in the user's folder is not imported
        command = [sys.executable, "-P", "-m", module, str(limit_bytes), str(os.getpid()), *arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                bufsize=0,
                start_new_session=True,
                pass_fds=tuple(files),
            )
        except OSError:
            self._log.close()
            raise
        self.alive = True
        self.pid = self._process.pid

    def exchange(self, request: dict[str, Any], limit_seconds: float) -> dict[str, Any] | SeunetError:
        """The answer, or what became of the process instead; after an error it is of no more use."""
        stdin, stdout = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return self._death()
        deadline = time.monotonic() + limit_seconds
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    return InputError(f"not decoded within {limit_seconds:g} s; export it again or leave it out")
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


def confine(limit_bytes: int) -> BinaryIO:
    """In the child: cap our own memory and keep the reply pipe, which is returned, to ourselves."""
    cap_memory(limit_bytes)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a C library prints goes to the error log, not between two replies
    return replies


def serve(replies: BinaryIO, answer: Callable[[bytes], dict[str, Any]]) -> None:
    """In the child: answer until the parent closes the pipe."""
    for line in sys.stdin.buffer:
        reply = answer(line)
        reply["peak_bytes"] = peak_bytes()
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def new_shared_file() -> int:
    """A descriptor of a file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("seunet-pixels")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedBytes:
    """Bytes that two processes hold, in a file that is mapped into memory: one puts pixels there, the other takes them.

    A pipe, or writing and reading the same file, cost four times as much for 2048² pixels.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self._bytes: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def first(self, count: int) -> NDArray[np.uint8]:
        """The first `count` bytes, to be read or written; the file grows with the largest count."""
        if count > len(self._bytes):
            if os.fstat(self.file).st_size < count:
                os.ftruncate(self.file, count)
            self._bytes = np.frombuffer(mmap.mmap(self.file, count), dtype=np.uint8)
        return self._bytes[:count]

    def close(self) -> None:
        """Let go of the file; a mapping lives as long as an array on it."""
        self._bytes = np.empty(0, dtype=np.uint8)
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
