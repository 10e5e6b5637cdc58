"""The process that opens files of unknown origin: one JSON line in, one JSON line out.

`python -m seunet.data.prepare.worker LIMIT_BYTES PARENT`, started by pool.py.  It caps its own memory; its time is the
parent's to cap, by killing it.  Nothing is pickled, and a crash here is a line of text there.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

from seunet.data.prepare.one_image import prepare_image
from seunet.errors import SeunetError
from seunet.storage.sandbox import confine, serve


def answer(line: bytes) -> dict[str, object]:
    """Do one job; what the user can correct comes back as a fault with its exit code."""
    try:
        return {"record": prepare_image(json.loads(line))}
    except SeunetError as error:
        return {"fault": str(error), "exit_code": error.exit_code}
    except MemoryError:
        return {"fault": "needs more memory than one image may take", "exit_code": 4}


def main() -> None:
    """Entry point."""
    replies = confine(int(sys.argv[1]))
    _die_with_parent(int(sys.argv[2]))
    serve(replies, answer)


def _die_with_parent(parent: int) -> None:
    """A parent that is killed takes its workers with it: a second run meets no straggler of the first."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before we could ask
        sys.exit(1)


if __name__ == "__main__":
    main()
