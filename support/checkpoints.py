"""Checkpoints that say which step they are of, and a process that writes them until it is killed."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import torch

from seunet.errors import ModelFileError
from seunet.models import create_model
from seunet.training import Checkpoint, make_optimizer, model_tensors, optimizer_tensors, write_checkpoint

MARK = "model/head.convolution.weight"


def checkpoint_of(step: int, widths: Sequence[int]) -> Checkpoint:
    """Model and optimiser of this size; the weights of the head and the facts say the step."""
    model = create_model("seunet", widths=list(widths))
    optimizer = make_optimizer(model, 1e-4)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    tensors = model_tensors(model) | optimizer_tensors(optimizer, model)
    tensors[MARK] = torch.full_like(tensors[MARK], step)
    return Checkpoint(tensors, {"progress": {"step": step}})


def step_of(checkpoint: Checkpoint) -> int:
    """What tensors and facts agree on."""
    step: int = checkpoint.facts["progress"]["step"]
    if bool((checkpoint.tensors[MARK] != step).any()):
        raise ModelFileError("tensors of one step and facts of another")
    return step


def killed_writer(path: Path, widths: Sequence[int], seconds: float, while_writing: bool) -> int:
    """Let a process write checkpoints back to back and kill it so long after its first one.

    `while_writing` waits for the next moment at which a file is half written.  Returns the last step that was finished.
    """
    heard, said = os.pipe()
    process = os.fork()  # a process started anew would need seconds to import
    if process == 0:
        os.close(heard)
        _write_for_ever(path, widths, said)
    os.close(said)
    with os.fdopen(heard, "rb") as lines:
        written = int(lines.readline())
        time.sleep(seconds)
        until = time.monotonic() + 10
        while while_writing and not any(path.parent.glob(".*.part")) and time.monotonic() < until:
            pass
        os.kill(process, signal.SIGKILL)
        rest = lines.read().split()
    os.waitpid(process, 0)
    return int(rest[-1]) if rest else written


def _write_for_ever(path: Path, widths: Sequence[int], said: int) -> NoReturn:
    """The number of each is said when it is on the disk."""
    try:
        kept = checkpoint_of(0, widths)
        for step in itertools.count(1):
            kept.tensors[MARK].fill_(step)
            write_checkpoint(path, Checkpoint(kept.tensors, {"progress": {"step": step}}))
            os.write(said, b"%d\n" % step)
    finally:
        os._exit(1)
