"""What the compiled loops have no derivative for is refused in one line; torch would drop it or speak of internals."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad

from seunet.errors import InputError

_REMEDY: Final = 'compute inside `with seunet.kernel_backend("torch"):`'


def check_transforms(*tensors: Tensor) -> None:
    """Refuse what sees through tensors: `torch.func` (vmap, jvp, grad …) and forward-mode differentiation."""
    transformed = torch._C._are_functorch_transforms_active()
    if transformed or any(forward_ad.unpack_dual(tensor)[1] is not None for tensor in tensors):  # type: ignore[no-untyped-call]
        raise InputError(f"the numba kernels know neither torch.func (vmap, jvp, grad) nor forward mode; {_REMEDY}")


class _NoFurther(torch.autograd.Function):
    """Gradients as they are, that cannot be differentiated again in what they depend on (the first `count`)."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors[count:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        raise InputError(f"the numba kernels have no second derivative; {_REMEDY}")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A `backward` whose results refuse a second one.

    torch's decorator of this name lets go of all that hangs on saved tensors: ∂/∂α of ∂L/∂x would be missing silently.
    """

    @wraps(backward)
    def guarded(ctx: Any, *gradients: Tensor) -> Any:
        with torch.no_grad():
            found = backward(ctx, *gradients)
        origins = [*ctx.saved_tensors, *gradients]
        if not torch.is_grad_enabled() or not any(origin.requires_grad for origin in origins):
            return found
        parts = found if isinstance(found, tuple) else (found,)
        kept = iter(_NoFurther.apply(len(origins), *origins, *(part for part in parts if part is not None)))  # type: ignore[no-untyped-call]
        parts = tuple(None if part is None else next(kept) for part in parts)
        return parts if isinstance(found, tuple) else parts[0]

    return guarded
