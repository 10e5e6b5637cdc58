"""What the heads of a model say at sampled pixels of held-out images, at nine scales and in three ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor

from seunet.data.manifest import ImageEntry
from seunet.data.windows import WindowDataset
from seunet.evaluation.confusions import images_of
from seunet.evaluation.predictors import Predict, blind, resampled, scaled_filters
from seunet.maths.rescaling import rescale, rescale_mask, scaled_size
from seunet.models.heads_to_use import model_mpp
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent

SCALES: Final = tuple(0.25 * 2 ** (step / 2) for step in range(9))
FILTER_SCALES: Final = (0.5, 2.0)
"""Farther from 1, filters are not scaled: they would be too narrow for pixels, or too wide to be cheap."""
LARGEST_PX: Final = 800
"""Of a rescaled window; of the middle of a window that becomes larger."""
SMALLEST_PX: Final = 16
PIXELS: Final = 4000
"""Sampled of each window at each scale."""

BLIND, SCALED, RESAMPLED, STATED = "blind", "scaled_filters", "resampled", "stated"


class Sampled(NamedTuple):
    """Pixels of one window at one scale: probabilities [γ, classes, n], classes [n]."""

    image: str
    scale: float
    way: str
    probabilities: Tensor
    classes: Tensor


def sampled_heads(
    model: ScaleUNet,
    root: Path,
    entries: Sequence[ImageEntry],
    tiles_px: tuple[int, ...] | None = None,
    progress: Progress = silent,
) -> list[Sampled]:
    """One window of every image, at every scale.  Every second image is averaged where it is shrunk.

    Scales are relative to the model's training images; an image without an mpp is taken to have the model's.
    """
    splits = sorted({entry.split for entry in entries})
    windows = WindowDataset(
        root, splits, images=[entry.name for entry in entries], cache_bytes=2**62, tiles_px=tiles_px
    )
    own_mpp, by_name = model_mpp(model), {entry.name: entry for entry in entries}
    result = []
    for place, (name, numbers) in enumerate(images_of(windows)):
        mpp = by_name[name].mpp
        own = 1.0 if mpp is None or own_mpp is None else own_mpp / mpp
        window = windows[numbers[len(numbers) // 2]]
        for step, scale in enumerate(SCALES):
            progress(place * len(SCALES) + step, len(entries) * len(SCALES), name)
            shown = _rescaled(window.image, window.mask, scale / own, averaged=place % 2 == 1)
            if shown is not None:
                result += _sampled(model, f"{root.name}/{name}", scale, *shown)
        windows.release()
    return result


def _sampled(model: ScaleUNet, name: str, scale: float, image: Tensor, mask: Tensor) -> list[Sampled]:
    chosen = torch.randperm(mask.numel(), generator=torch.Generator().manual_seed(0))[:PIXELS]
    result = []
    for way, predict in _ways(model, scale).items():
        with torch.inference_mode():
            found = predict(image)[0].flatten(2)[..., chosen]
        result.append(Sampled(name, scale, way, found.clone(), mask.flatten()[chosen]))
    return result


def _ways(model: ScaleUNet, scale: float) -> dict[str, Predict]:
    ways = {BLIND: blind(model, scale), RESAMPLED: resampled(model, scale, antialias=True)}
    if isinstance(model, SEUNet) and FILTER_SCALES[0] <= scale <= FILTER_SCALES[1]:
        ways[SCALED] = scaled_filters(model, scale)
    return ways


def _rescaled(image: Tensor, mask: Tensor, factor: float, averaged: bool) -> tuple[Tensor, Tensor] | None:
    """The middle of a window rescaled; None if hardly anything is left of it."""
    size_px = mask.shape[0]
    side = min(size_px, max(round(LARGEST_PX / factor), 1))
    if scaled_size(side, factor) < SMALLEST_PX:
        return None
    start = (size_px - side) // 2
    middle = slice(start, start + side)
    return rescale(image[None, :, middle, middle], factor, averaged), rescale_mask(mask[None, middle, middle], factor)
