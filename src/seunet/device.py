"""Where a network computes."""

from __future__ import annotations

from typing import Final

import torch

from seunet.errors import InputError, check_known

DEVICES: Final = ("auto", "cpu", "cuda", "mps")


def usable_device(name: str) -> str:
    """The device of that name, if this machine has it; "auto" is the first of cuda, mps and cpu that it has."""
    check_known("device", name, DEVICES)
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(device for device, usable in there.items() if usable)
    if not there[name]:
        raise InputError(f"--device {name}: this machine has no usable {name} device; use auto or cpu")
    return name
