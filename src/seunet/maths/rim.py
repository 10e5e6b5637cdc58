"""The rim between touching objects as part of the objects: for labels, scores and the loss of what is not known."""

from __future__ import annotations

import torch
from torch import Tensor


def without_rim(probabilities: Tensor, rim: int | None, dim: int = 2) -> Tensor:
    """p(object) + p(rim) in the place of p(object), the class before the rim, which is the last; as is where None."""
    if rim is None:
        return probabilities
    parts = list(probabilities.unbind(dim))
    last = parts.pop(rim)
    parts[rim - 1] = parts[rim - 1] + last
    return torch.stack(parts, dim)


def undecided_shares(classes: int, rim: int | None) -> tuple[float, ...]:
    """The probabilities of who knows nothing: equal for all classes, of which the rim and its object are one.

    Examples:
        >>> undecided_shares(3, None), undecided_shares(3, 2)
        ((0.3333333333333333, 0.3333333333333333, 0.3333333333333333), (0.5, 0.25, 0.25))
    """
    if rim is None:
        return (1 / classes,) * classes
    return tuple(1 / (classes - 1) / (2 if code in (rim - 1, rim) else 1) for code in range(classes))
