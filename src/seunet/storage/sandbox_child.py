"""The inside of a process that opens files of unknown origin (sandbox.py starts it): memory capped, replies apart."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from seunet.memory import peak_bytes
from seunet.system import cap_memory


def confine(limit_bytes: int) -> BinaryIO:
    """Cap our own memory and keep the reply pipe, which is returned, to ourselves."""
    cap_memory(limit_bytes)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a C library prints goes to the error log, not between two replies
    return replies


def serve(replies: BinaryIO, answer: Callable[[bytes], dict[str, Any]]) -> None:
    """Answer until the parent closes the pipe."""
    for line in sys.stdin.buffer:
        reply = answer(line)
        reply["peak_bytes"] = peak_bytes()
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
