"""What makes a processor wait for its graphics card: reading a value, asking how many there are, copying across.

Seen from a machine without one: by the functions that are called and by the operations that reach a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

READING: Final = frozenset(
    {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique_dim", "_unique2", "bincount"}
)
"""Operations whose result, or its size, the processor must know."""

FROM_HOST: Final = frozenset({"tensor", "as_tensor", "asarray", "from_numpy", "new_tensor", "scalar_tensor"})
"""Numbers of Python that become a tensor: on a card a copy that is waited for, and no part of a CUDA graph."""

VIEWS: Final = frozenset(
    {"view", "_unsafe_view", "_reshape_alias", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "slice"}
    | {
        "select",
        "detach",
        "alias",
        "as_strided",
        "unbind",
        "split",
        "split_with_sizes",
        "empty",
        "empty_like",
        "view_as",
    }
)
"""Operations on sizes and memory alone: nothing is computed."""

TO_HOST: Final = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__"})


@dataclass
class Seen:
    """Operations in their order, and those among them that wait."""

    operations: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, seen: Seen) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = seen

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = operation.overloadpacket.__name__
        if operation.namespace == "aten":  # not: what device a tensor is on
            self.seen.operations.append(name)
            if name in READING or (name in ("index", "index_put") and _has_mask(args[1])):
                self.seen.waits.append(name)
        return operation(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        on_host = torch.device("cpu") in (torch.device((kwargs or {}).get("device") or "meta"), *args[1:2])
        if name in FROM_HOST or name in TO_HOST or (name == "to" and (on_host or "cpu" in args[1:2])):
            self.seen.waits.append(resolve_name(function) or name)
        return function(*args, **(kwargs or {}))


def _has_mask(indices: Any) -> bool:
    """Whether places are given by true and false: they are counted first."""
    return any(isinstance(one, Tensor) and one.dtype in (torch.bool, torch.uint8) for one in indices)


@contextmanager
def watched() -> Iterator[Seen]:
    """What is done with tensors inside the block, backward passes too."""
    seen = Seen()
    with _Functions(seen), _Operations(seen):
        yield seen
