"""Counts of predicted against true classes, and the scores they give."""

from __future__ import annotations

import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.maths.losses import IGNORE_INDEX


def confusion_matrix(predicted: Tensor, target: Tensor, classes: int, ignore_index: int = IGNORE_INDEX) -> Tensor:
    """How many pixels of class i were called j: [classes, classes], int64.  Pixels to ignore are left out."""
    if predicted.shape != target.shape:
        raise InputError(f"`predicted` of shape {list(predicted.shape)} and `target` {list(target.shape)} must agree")
    return confusion_matrices(predicted[None], target, classes, ignore_index)[0]


def confusion_matrices(predicted: Tensor, target: Tensor, classes: int, ignore_index: int = IGNORE_INDEX) -> Tensor:
    """`confusion_matrix` of several predictions of one target: [P, …] and […] → [P, classes, classes], one count."""
    if predicted.shape[1:] != target.shape:
        raise InputError(f"`predicted` of shape {list(predicted.shape)} must be [predictions, *{list(target.shape)}]")
    places = classes + 1  # what is to be ignored is counted as one more true class, and dropped: no pixel is gathered
    ignored = target == ignore_index
    wrong = _outside(predicted, classes).any() or (_outside(target, classes) & ~ignored).any()
    if bool(wrong):
        raise InputError(f"`target` and `predicted` must hold classes 0 … {classes - 1}")
    truth = torch.where(ignored, classes, target.long())
    kinds = len(predicted) * places * classes
    number = torch.int16 if kinds < 2**15 else torch.int64  # a quarter of the memory traffic, which is what it costs
    which = torch.arange(len(predicted), dtype=number, device=predicted.device).view(-1, *[1] * target.ndim)
    pairs = (which * places + truth.to(number)).mul_(classes).add_(predicted.to(number))
    counts = torch.bincount(pairs.flatten(), minlength=kinds)
    return counts.view(len(predicted), places, classes)[:, :classes]


def _outside(codes: Tensor, classes: int) -> Tensor:
    return (codes < 0) | (codes >= classes)


def class_iou(confusion: Tensor) -> Tensor:
    """|A ∩ B| / |A ∪ B| of each class, [classes] in double precision; NaN where a class is in neither."""
    both = confusion.diagonal().double()
    either = confusion.sum(0) + confusion.sum(1) - confusion.diagonal()
    return both / either


def headline_iou(confusion: Tensor) -> float:
    """The one number of a table: the IoU of class 1 for two classes, else the mean over the classes that occur."""
    ious = class_iou(confusion)
    return float(ious[1]) if len(ious) == 2 else float(ious.nanmean())
