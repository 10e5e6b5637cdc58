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
    known = target != ignore_index
    rows, columns = target[known].long(), predicted[known].long()
    for codes in (rows, columns):
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < classes:
            raise InputError(f"`target` and `predicted` must hold classes 0 … {classes - 1}")
    return torch.bincount(rows * classes + columns, minlength=classes**2).view(classes, classes)


def class_iou(confusion: Tensor) -> Tensor:
    """|A ∩ B| / |A ∪ B| of each class, [classes] in double precision; NaN where a class is in neither."""
    both = confusion.diagonal().double()
    either = confusion.sum(0) + confusion.sum(1) - confusion.diagonal()
    return both / either


def headline_iou(confusion: Tensor) -> float:
    """The one number of a table: the IoU of class 1 for two classes, else the mean over the classes that occur."""
    ious = class_iou(confusion)
    return float(ious[1]) if len(ious) == 2 else float(ious.nanmean())
