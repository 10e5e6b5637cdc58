"""One confusion matrix per head and fusion over all pixels of all windows, one batch in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

import torch
from torch import Tensor

from seunet.data.windows import WindowDataset
from seunet.evaluation.predictors import Predict
from seunet.maths.confusion import confusion_matrices
from seunet.maths.fusion import Fusion, predicted_classes
from seunet.maths.rescaling import rescale, rescale_mask, scaled_size

BATCH_PIXELS: Final = 400 * 400
"""Small windows are put through the network together up to this size, large ones alone."""

STRIP_PIXELS: Final = 1 << 18
"""Pixels that are counted at a time: fusing takes many times the memory of what it fuses."""


def counts(probabilities: Tensor, masks: Tensor, fusions: Sequence[Fusion]) -> Tensor:
    """Confusion matrices of `predicted_classes`: [heads + fusions, classes, classes]."""
    heads, classes, height, width = probabilities.shape[1:]
    total = torch.zeros(heads + len(fusions), classes, classes, dtype=torch.int64)
    rows = max(STRIP_PIXELS // (len(masks) * width), 1)
    for top in range(0, height, rows):
        strip = slice(top, top + rows)
        total += confusion_matrices(predicted_classes(probabilities[..., strip, :], fusions), masks[:, strip], classes)
    return total


def window_batches(
    windows: WindowDataset, scale: float, antialias: bool = False, of_image: str | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Images and masks of the windows (all, or those of one image) at `scale`, one image in memory at a time."""
    side = scaled_size(windows.size_px, scale)
    batch = max(BATCH_PIXELS // max(side**2, 1), 1)
    for name, numbers in images_of(windows):
        if of_image not in (None, name):
            continue
        for start in range(0, len(numbers), batch):
            images, masks = [], []
            for number in numbers[start : start + batch]:
                window = windows[number]
                images.append(window.image if scale == 1 else rescale(window.image[None], scale, antialias)[0])
                masks.append(window.mask if scale == 1 else rescale_mask(window.mask[None], scale)[0])
            yield torch.stack(images), torch.stack(masks)
        windows.release()


def images_of(windows: WindowDataset) -> Iterator[tuple[str, list[int]]]:
    """Names of the images in the order of the windows, each with the numbers of its windows."""
    for name, numbers in groupby(range(len(windows)), windows.image_name):
        yield name, list(numbers)


def confusions(
    predict: Predict,
    windows: WindowDataset,
    scale: float,
    fusions: Sequence[Fusion],
    antialias: bool = False,
    on_windows: Callable[[int], None] = lambda count: None,
    of_image: str | None = None,
) -> Tensor:
    """`counts` over all windows of the set, or of one image, at `scale`.

    `on_windows` gets the number of windows that were just done.
    """
    total: Tensor | None = None
    with torch.inference_mode():
        for images, masks in window_batches(windows, scale, antialias, of_image):
            found = counts(predict(images), masks, fusions)
            total = found if total is None else total + found
            on_windows(len(images))
    if total is None:
        raise ValueError("a set of no windows has no confusion matrix")
    return total
