"""The processes that train together: one, or those that `torchrun` started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed

from seunet.errors import InputError


@dataclass(frozen=True)
class Processes:
    """How many there are, which one this is, and where its tensors live."""

    rank: int
    size: int
    device: torch.device

    @property
    def lead(self) -> bool:
        """The one that writes files and speaks."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """The sum of `values` over all processes, in each of them."""
        if self.size > 1:
            values = values.clone()
            distributed.all_reduce(values)
        return values

    def gathered(self, values: Tensor) -> Tensor:
        """The `values` of all processes one after the other, in each of them; they must be equally long."""
        if self.size == 1:
            return values
        parts = [torch.empty_like(values) for _ in range(self.size)]
        distributed.all_gather(parts, values)
        return torch.cat(parts)

    def any(self, flag: bool) -> bool:
        """Whether it is true in any process: all must leave a loop at the same step."""
        return bool(flag) if self.size == 1 else bool(self.total(torch.tensor(int(flag), device=self.device)))

    def follow_lead(self, tensors: Iterable[Tensor]) -> None:
        """Give `tensors` the lead's values in every process."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            distributed.barrier()


@contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Join the processes that the environment names (RANK, WORLD_SIZE, …, as torchrun sets them), or be alone."""
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    place = _device(device, int(os.environ.get("LOCAL_RANK", 0)))
    if size == 1:
        yield Processes(0, 1, place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    # Before there is a group: imported later, by torch.optim or a norm, its functions keep the group as their default,
    # and with it threads that outlive Python; now and then they abort the process as it ends.
    from torch.distributed.nn import functional  # noqa: F401

    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(rank, size, place)
    finally:
        distributed.destroy_process_group()


def _device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"`machine.device` (={name!r}) is no device; use auto, cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"`machine.device` (={name!r}): this machine has no usable GPU; use auto or cpu")
    return torch.device("cuda", local_rank) if name == "cuda" else device
