"""Whether anyone looks at what passes through a module: then its steps are not fused with those that follow."""

from __future__ import annotations

from torch import nn
from torch.nn.modules import module as of_all


def hooked(*modules: nn.Module) -> bool:
    """Whether one of these modules has a hook, or all modules have."""
    if of_all._global_forward_hooks or of_all._global_forward_pre_hooks:
        return True
    if of_all._global_backward_hooks or of_all._global_backward_pre_hooks:
        return True
    return any(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
        for module in modules
    )
