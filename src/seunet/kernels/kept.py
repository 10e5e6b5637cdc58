"""What follows from weights that no longer change is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from seunet.recording import is_recording

T = TypeVar("T")


class Kept:
    """What was last made from some tensors, for as long as they hold the same numbers.

    The numbers themselves are compared, all of them: weights are changed in place in ways that no counter of versions
    tells (`.data`, another process), and comparing is much cheaper than making.  Where a gradient is wanted or a graph
    is recorded nothing is kept.  A copy of a module, or one read from a file, begins without.
    """

    _last: tuple[Any, Any] | None = None

    def made(self, make: Callable[..., T], tensors: tuple[Tensor, ...], *settings: Any) -> T:
        """`make(*tensors, *settings)`, or what this gave before."""
        if torch.is_grad_enabled() or is_recording() or not all(_has_numbers(one) for one in tensors):
            return make(*tensors, *settings)
        numbers = [(one.dtype, one.shape, one.detach().numpy().tobytes()) for one in tensors]
        last = self._last  # another thread may put its own there meanwhile
        if last is None or last[0] != (settings, numbers):
            last = self._last = (settings, numbers), make(*tensors, *settings)
        return last[1]

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()


def _has_numbers(tensor: Tensor) -> bool:
    """Whether a tensor is no more than numbers in main memory, of a type that NumPy knows."""
    plain = type(tensor) in (Tensor, nn.Parameter) and not torch._C._are_functorch_transforms_active()
    return plain and tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)
