"""Whether anyone looks at what passes through a module: then its steps are not fused with those that follow."""

from __future__ import annotations

from torch import nn
from torch.nn.modules import module as of_all


def hooked(*modules: nn.Module) -> bool:
    """Whether one of these modules has a hook, or all modules have."""
    return bool(of_all._has_any_global_hook()) or any(  # type: ignore[no-untyped-call]
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
        for module in modules
    )
