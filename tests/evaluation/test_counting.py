"""Confusion matrices over a set: against numpy, pixel by pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from seunet.errors import InputError
from seunet.evaluation import confusions as counting
from seunet.evaluation.confusions import confusions, counts, window_batches
from seunet.evaluation.predictors import blind
from seunet.evaluation.run import open_windows
from seunet.maths import FUSIONS, confidence, confusion_matrices, confusion_matrix, first_largest, predicted_classes
from tests.support.prepared import prepared_nuclei, prepared_tissue, saved_model


def numpy_labels(p: np.ndarray) -> np.ndarray:
    """[heads, classes, H, W] → [heads + 3, H, W], written from section 3.4 of the paper."""
    ordered = np.sort(p, axis=1)
    delta = ordered[:, -1] - ordered[:, -2]
    winner = delta.argmax(0)
    p_dist = np.take_along_axis(p, winner[None, None], axis=0)[0]
    weights = np.exp(delta) / np.exp(delta).sum(0)
    p_ens = (weights[:, None] * p).sum(0)
    return np.stack([*p.argmax(1), p.mean(0).argmax(0), p_dist.argmax(0), p_ens.argmax(0)])


def numpy_confusion(predicted: np.ndarray, truth: np.ndarray, classes: int) -> list[list[int]]:
    return [[int(((truth == i) & (predicted == j)).sum()) for j in range(classes)] for i in range(classes)]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_labels_and_counts_are_those_of_numpy(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "STRIP_PIXELS", 70)  # several strips, the last one shorter
    probabilities = torch.rand(1, 4, classes, 23, 17).softmax(2)
    mask = torch.randint(0, classes, (1, 23, 17))
    mask[0, :3] = 255
    expected = numpy_labels(probabilities[0].double().numpy())
    assert (predicted_classes(probabilities, FUSIONS)[:, 0].numpy() == expected).all()
    by_hand = [numpy_confusion(each, mask[0].numpy(), classes) for each in expected]
    assert counts(probabilities, mask, FUSIONS).tolist() == by_hand


def test_the_matrices_of_a_set_are_the_sums_over_its_windows(tmp_path: Path) -> None:
    """An oracle of its own: numpy resizing, one window at a time, counted pixel by pixel."""
    windows = open_windows(prepared_nuclei(tmp_path), "test", None)
    model = saved_model(tmp_path / "model")
    for scale in (0.5, 2.0):
        total = np.zeros((8, 2, 2), dtype=int)
        for number in range(len(windows)):
            image, mask = windows[number].image.double().numpy(), windows[number].mask.numpy()
            if scale == 0.5:  # bilinear at pixel centres, without antialiasing: the mean of 2×2 pixels
                image = (image[:, ::2, ::2] + image[:, 1::2, ::2] + image[:, ::2, 1::2] + image[:, 1::2, 1::2]) / 4
                mask = mask[1::2, 1::2]  # the centre of a large pixel lies on a corner: the nearest is the later one
            else:
                for axis in (1, 2):
                    before, after = (np.roll(image, shift, axis) for shift in (1, -1))
                    first, last = [slice(None)] * 3, [slice(None)] * 3
                    first[axis], last[axis] = slice(0, 1), slice(-1, None)
                    before[tuple(first)], after[tuple(last)] = image[tuple(first)], image[tuple(last)]
                    both = np.stack([0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis=axis + 1)
                    image = both.reshape(*image.shape[:axis], -1, *image.shape[axis + 1 :])
                mask = mask.repeat(2, 0).repeat(2, 1)
            with torch.no_grad():
                found = model(torch.from_numpy(image).float()[None]).softmax(2)[0].double().numpy()
            total += [numpy_confusion(each, mask, 2) for each in numpy_labels(found)]
        counted = confusions(blind(model, scale), windows, scale, FUSIONS)
        assert int(counted[0].sum()) == total[0].sum() == len(windows) * round(32 * scale) ** 2
        assert np.abs(counted.numpy() - total).max() <= 3  # rounding may tip a pixel that is on the edge


def test_what_is_to_be_ignored_is_counted_nowhere(tmp_path: Path) -> None:
    windows = open_windows(prepared_tissue(tmp_path), "train", None)
    model = saved_model(tmp_path / "model", classes=3)
    known = sum(int((windows[number].mask != 255).sum()) for number in range(len(windows)))
    counted = confusions(blind(model, 1.0), windows, 1.0, FUSIONS)
    assert known < len(windows) * 24**2
    assert counted.sum((1, 2)).tolist() == [known] * 8


def test_an_image_is_let_go_of_before_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = open_windows(prepared_nuclei(tmp_path, train=4), "train", None)
    held = []
    for images, masks in window_batches(windows, 0.5):
        held.append(len(windows._pixels._held))
        assert images.shape[2:] == masks.shape[1:] == (16, 16)
    assert held == [1] * 4
    assert not windows._pixels._held
    assert not (tmp_path / "set" / ".pixels").exists()


def test_small_windows_go_through_together_and_large_ones_alone(tmp_path: Path) -> None:
    windows = open_windows(prepared_nuclei(tmp_path), "test", None)
    assert [len(images) for images, _ in window_batches(windows, 1.0)] == [9, 9]
    assert [len(images) for images, _ in window_batches(windows, 16.0)] == [1] * 18


@pytest.mark.parametrize("classes", [2, 5])
def test_many_matrices_at_once_are_those_one_by_one(classes: int) -> None:
    predicted, target = torch.randint(0, classes, (7, 2, 9, 5)), torch.randint(0, classes, (2, 9, 5))
    target[0, 0] = 255
    one_by_one = torch.stack([confusion_matrix(each, target, classes) for each in predicted])
    assert torch.equal(confusion_matrices(predicted, target, classes), one_by_one)


def test_many_classes_do_not_overflow_the_small_numbers() -> None:
    predicted, target = torch.randint(0, 300, (3, 50)), torch.randint(0, 300, (50,))
    target[target == 255] = 0
    assert int(confusion_matrices(predicted, target, 300)[2, target[7], predicted[2, 7]]) >= 1


@pytest.mark.parametrize(
    ("predicted", "target", "text"),
    [
        ([[0, 1]], [0, 2], "`target` and `predicted` must hold classes 0 … 1"),
        ([[0, 2]], [0, 1], "`target` and `predicted` must hold classes 0 … 1"),
        ([[0]], [0, 1], r"`predicted` of shape \[1, 1\] must be \[predictions, \*\[2\]\]"),
    ],
)
def test_other_classes_and_shapes_are_refused(predicted: list[list[int]], target: list[int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        confusion_matrices(torch.tensor(predicted), torch.tensor(target), 2)


def test_the_first_of_equals_is_the_largest() -> None:
    values = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    assert first_largest(values, dim=1).tolist() == [1, 0]
    assert first_largest(values, dim=0).tolist() == [1, 0, 0]


def test_the_distance_is_that_of_the_two_largest() -> None:
    probabilities = torch.rand(2, 3, 6, 4, 5).softmax(2)
    best = probabilities.topk(2, dim=2).values
    assert torch.equal(confidence(probabilities), best[:, :, 0] - best[:, :, 1])
