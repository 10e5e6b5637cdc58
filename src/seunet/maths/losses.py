"""The loss of the paper (eq. 8 and 9), and what training can add to it."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seunet.errors import InputError
from seunet.maths.rim import without_rim

IGNORE_INDEX: Final = 255
"""The label of pixels that count for nothing: outside the annotated region."""


def scale_losses(logits: Tensor, target: Tensor, ignore_index: int = IGNORE_INDEX) -> Tensor:
    """l_k = mean over the labelled pixels of −log softmax(logits_k)[target]: one loss per scale, [γ].

    logits [B, γ, classes, H, W], target [B, H, W] of class indices.  With no labelled pixel the loss is 0.
    """
    return scale_loss_sums(logits, target, ignore_index) / labelled_pixels(target, ignore_index).clamp(min=1)


def labelled_pixels(target: Tensor, ignore_index: int = IGNORE_INDEX) -> Tensor:
    """How many pixels have a class."""
    return (target != ignore_index).sum()


def scale_loss_sums(
    logits: Tensor,
    target: Tensor,
    ignore_index: int = IGNORE_INDEX,
    class_weights: Tensor | None = None,
    doubt: Tensor | None = None,
    undecided: Tensor | None = None,
) -> Tensor:
    """Σ over the labelled pixels of −w_c log softmax(logits_k)[c], c the target's class, [γ]: parts of a batch add up.

    `target` [B, H, W] is that of every scale; [B, γ, H, W] has one for each, as when each was shown another image.

    `doubt` ε [B, γ] from 0 to 1: how unsure a prediction is to be. (1 − ε) · the above − ε · mean_c log softmax[c], of
    which ε = 1 is least where all classes are equally likely; with `undecided` u [classes] Σ_c u_c log softmax[c] in
    place of the mean, least where the classes are as likely as u says.
    """
    each, (batch, scales) = _target_of_each(target, logits, ignore_index), logits.shape[:2]
    weight = None if class_weights is None else class_weights.to(logits.dtype)
    losses = cross_entropy(
        logits.flatten(0, 1), each.flatten(0, 1), weight, ignore_index=ignore_index, reduction="none"
    )
    losses = losses.view(batch, scales, -1)
    if doubt is not None:
        between = logits.mean(2) if undecided is None else torch.einsum("bgchw,c->bghw", logits, undecided.to(logits))
        unsure = (logits.logsumexp(2) - between).masked_fill(each == ignore_index, 0)
        losses = torch.lerp(losses, unsure.flatten(2), doubt[..., None])
    return losses.sum((0, 2))


def overlap_loss_sums(
    logits: Tensor,
    target: Tensor,
    ignore_index: int = IGNORE_INDEX,
    rim: int | None = None,
    doubt: Tensor | None = None,
) -> Tensor:
    """Σ over the windows of n·(1 − mean_c J_c), [γ]: n labelled pixels, so that parts of a batch add up.

    J_c = (1 + Σ p_c t_c) / (1 + Σ p_c + Σ t_c − Σ p_c t_c) over the labelled pixels of a window, t_c = 1 where the
    target is class c: the IoU of probabilities, 1 where a class is neither there nor predicted.  The class `rim` is
    part of the one before it.  A window counts 1 − ε, ε its `doubt` [B, γ].
    """
    each = _target_of_each(target, logits, ignore_index)
    labelled = (each != ignore_index)[:, :, None]
    predicted = without_rim(logits.softmax(2), rim) * labelled
    if rim is not None:
        each = each.masked_fill(each == rim, rim - 1)
    true = (each[:, :, None] == torch.arange(predicted.shape[2], device=each.device)[:, None, None]).to(predicted)
    both, together = (predicted * true).sum((3, 4)), (predicted + true).sum((3, 4))
    missed = 1 - ((1 + both) / (1 + together - both)).mean(2)
    counted = labelled.sum((2, 3, 4)) if doubt is None else labelled.sum((2, 3, 4)) * (1 - doubt)
    return (counted * missed).sum(0)


def _target_of_each(target: Tensor, logits: Tensor, ignore_index: int) -> Tensor:
    """The class of each pixel for each scale, [B, γ, H, W]."""
    batch, scales, classes, height, width = logits.shape
    if target.shape not in ((batch, height, width), (batch, scales, height, width)):
        raise InputError(f"`target` of shape {list(target.shape)} must be {[batch, height, width]}, as the logits are")
    if target.device.type == "cpu" and not torch.compiler.is_compiling():
        # A graphics card would have to be waited for; its own cross entropy stops at such a class.
        _check_classes(target, classes, ignore_index)
    return target.long() if target.ndim == 4 else target.long()[:, None].expand(batch, scales, height, width)


def _check_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    labelled = target != ignore_index
    if bool((labelled & ((target < 0) | (target >= classes))).any()):
        worst = int(target[labelled].max())
        raise InputError(
            f"`target` holds class {worst}; the model knows 0 … {classes - 1} and {ignore_index} for ignore"
        )


def weighted_loss(losses: Tensor, weights: Tensor) -> Tensor:
    """L = Σ_k η̃_k l_k (paper eq. 9)."""
    return torch.dot(weights.to(losses.dtype), losses)
