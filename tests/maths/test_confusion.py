"""Counts of predicted against true classes, and the scores they give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from seunet.errors import InputError
from seunet.maths.confusion import class_iou, confusion_matrix, headline_iou


def test_rows_are_the_truth_columns_the_prediction_and_255_counts_for_nothing() -> None:
    target = torch.tensor([[0, 0, 1, 1, 2, 255, 255]])
    predicted = torch.tensor([[0, 1, 1, 1, 0, 2, 0]])
    assert confusion_matrix(predicted, target, 3).tolist() == [[1, 1, 0], [0, 2, 0], [1, 0, 0]]


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_iou_is_that_of_the_two_sets_of_pixels(classes: int) -> None:
    random = np.random.default_rng(classes)
    target, predicted = random.integers(0, classes, (2, 4, 9, 11))
    target[random.random(target.shape) < 0.2] = 255
    confusion = confusion_matrix(torch.tensor(predicted), torch.tensor(target), classes)
    assert confusion.dtype == torch.int64
    assert int(confusion.sum()) == int((target != 255).sum())
    for code, iou in enumerate(class_iou(confusion).tolist()):
        here, there = (target == code), (predicted == code) & (target != 255)
        assert iou == pytest.approx((here & there).sum() / (here | there).sum(), rel=1e-12)


def test_parts_of_a_set_add_up() -> None:
    target, predicted = torch.randint(0, 3, (2, 6, 8, 8)).unbind()
    parts = sum(confusion_matrix(p, t, 3) for p, t in zip(predicted, target, strict=True))
    assert torch.equal(parts, confusion_matrix(predicted, target, 3))  # type: ignore[arg-type]


def test_for_two_classes_the_headline_is_that_of_class_one_else_the_mean_of_those_that_occur() -> None:
    assert headline_iou(torch.tensor([[90, 5], [2, 3]])) == pytest.approx(3 / 10)
    three = torch.tensor([[8, 2, 0], [0, 10, 0], [0, 0, 0]])
    assert class_iou(three).tolist()[:2] == pytest.approx([8 / 10, 10 / 12])
    assert math.isnan(class_iou(three)[2])
    assert headline_iou(three) == pytest.approx((8 / 10 + 10 / 12) / 2)


def test_with_nothing_labelled_there_is_no_score() -> None:
    nothing = confusion_matrix(torch.zeros(2, 2), torch.full((2, 2), 255), 3)
    assert int(nothing.sum()) == 0
    assert math.isnan(headline_iou(nothing))


def test_shapes_must_agree_and_classes_must_be_known() -> None:
    with pytest.raises(InputError, match=r"`predicted` of shape \[2, 3\] and `target` \[3, 2\] must agree"):
        confusion_matrix(torch.zeros(2, 3), torch.zeros(3, 2), 2)
    for predicted, target in ((0, 2), (-1, 0), (0, -1), (2, 0), (-1, 1)):
        with pytest.raises(InputError, match=r"`target` and `predicted` must hold classes 0 … 1"):
            confusion_matrix(torch.full((1,), predicted), torch.full((1,), target), 2)
