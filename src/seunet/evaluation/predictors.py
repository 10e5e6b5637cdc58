"""Ways of predicting an image at test scale s: with filters scaled, the image resampled, or neither.

A way is a function (model, s) → (images [B, C, H, W] → probabilities [B, heads, classes, H, W]).  What depends on s
alone is done once.  Images and probabilities are both at the test scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from seunet.errors import InputError, check_known
from seunet.evaluation.way_names import WAYS, way_label
from seunet.maths.fusion import fuse
from seunet.maths.rescaling import rescale, resize, scaled_size
from seunet.maths.rim import without_rim
from seunet.memory import give_back_freed_memory
from seunet.models.heads_to_use import filter_range
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.segmentation.scale_plan import working_pixels

Predict = Callable[[Tensor], Tensor]

PYRAMID_FACTORS: Final = (0.5, 0.7, 1.0, 1.4, 2.0)
PYRAMID_FUSION: Final = "p_ens"
"""How the heads of a model become one prediction per factor."""

VALUES_AT_ONCE: Final = 60 * 800 * 800
"""Channels × pixels of the widest map up to which all scales run together; larger maps run one scale at a time."""


@dataclass(frozen=True)
class Way:
    """A way of predicting: its name, and the function itself."""

    name: str
    at_scale: Callable[[ScaleUNet, Any], Predict]
    estimates: bool = False
    """Whether `at_scale` is given what is estimated from each whole image, instead of the true scale."""
    scale_known: bool = False
    """Whether filters or image follow s, so that structures have the size of the training for the filters."""
    own_heads: bool = True
    """Whether its heads are those of the model: only they have a calibration."""

    @property
    def label(self) -> str:
        """What its rows in a table begin with."""
        return way_label(self.name)

    def head_names(self, model: ScaleUNet) -> tuple[str, ...]:
        """Of the model's heads, or of the sizes that stand for heads."""
        if not self.own_heads:
            return tuple(f"× {factor:g}" for factor in PYRAMID_FACTORS)
        return tuple(f"head {number}" for number in range(1, model.heads + 1)) if model.heads > 1 else ("prediction",)


def pixels_seen(way: str, scale: float, size_px: int) -> int:
    """How many pixels the network sees for one window of `size_px` at a test scale: what it costs."""
    resized = (1 / scale,)
    by_way = {"resampled": resized, "stated": resized, "estimated": resized, "pyramid": PYRAMID_FACTORS}
    side = scaled_size(size_px, scale)
    work = sum((side * factor) ** 2 for factor in by_way.get(way, (1.0,)))
    # Filters grow with σ: their share of the work is about a half at s = 1.
    return round(work * (0.5 + 0.5 * scale) if way == "scaled_filters" else work)


def head_logits(model: ScaleUNet) -> Predict:
    """`model` itself, in bounded memory: a SEUNet runs large images one scale at a time.

    Images go where its weights are, logits come back to where the images were.
    """
    parts: list[SEUNet] = []

    def logits(images: Tensor) -> Tensor:
        values = images.shape[0] * images.shape[2] * images.shape[3] * model.config.widths[0]
        if not isinstance(model, SEUNet) or model.heads == 1 or values <= VALUES_AT_ONCE:
            return model(images.to(model.device)).to(images.device)  # type: ignore[no-any-return]
        if not parts:
            parts.extend(model.only_scale(number) for number in range(model.heads))
        found = []
        for part in parts:
            found.append(part(images.to(model.device)).to(images.device))
            give_back_freed_memory()  # the next part's maps have other sizes, and heaps do not shrink by themselves
        return torch.cat(found, dim=1)

    return logits


def blind(model: ScaleUNet, scale: float) -> Predict:
    """The model as it was trained; s is not used.  A rim is part of its objects."""
    logits = head_logits(model)
    return lambda images: without_rim(logits(images).softmax(2), model.rim)


def scaled_filters(model: ScaleUNet, scale: float) -> Predict:
    """Every σ × s (`SEUNet.at_scale`)."""
    if not isinstance(model, SEUNet):
        raise InputError(
            f"--scaled-filters multiplies the σ of a model, and {model.name} has none; leave it out, or use --resampled"
        )
    return blind(model.at_scale(scale), scale)


def resampled(model: ScaleUNet, scale: float, antialias: bool = False) -> Predict:
    """The image is resampled to the training scale, the probabilities back: the ceiling for any model."""
    return _at_size(blind(model, scale), 1 / scale, antialias)


def stated(model: ScaleUNet, scale: float | None, antialias: bool = False) -> Predict:
    """What `seunet segment` does with a stated scale (`segmentation.scale_plan`).

    Every σ × s where the model's card says that this is as good, else the image resampled to the training scale.
    Blind if `scale` is None.
    """
    if scale is None:
        return blind(model, 1.0)
    found = working_pixels(scale, (1.0,), filter_range(model))
    predict = blind(model, 1.0) if found.factor == 1 else scaled_filters(model, found.factor)
    return _at_size(predict, found.resample, antialias)


def pyramid(model: ScaleUNet, scale: float, antialias: bool = False) -> Predict:
    """Blind to s: the image at several sizes, each prediction resized back and treated as a head."""
    predict = blind(model, scale)

    def as_head(images: Tensor) -> Tensor:
        return fuse(predict(images), PYRAMID_FUSION)[:, None]

    heads = [_at_size(as_head, factor, antialias) for factor in PYRAMID_FACTORS]
    return lambda images: torch.cat([head(images) for head in heads], dim=1)


def _at_size(predict: Predict, factor: float, antialias: bool) -> Predict:
    """What is predicted of images `factor` times as large, in the size that they have."""
    if factor == 1:
        return predict
    return lambda images: _resized(predict(rescale(images, factor, antialias)), images, antialias)


def _resized(probabilities: Tensor, like: Tensor, antialias: bool) -> Tensor:
    height, width = like.shape[-2:]
    flat = resize(probabilities.flatten(1, 2), height, width, antialias)
    return flat.view(*probabilities.shape[:3], height, width)


def ways_of_predicting(names: Sequence[str], antialias: bool = False) -> tuple[Way, ...]:
    """The ways of these names, in the order of `WAYS`."""
    as_segment = partial(stated, antialias=antialias)
    ways = {
        "blind": Way("blind", blind),
        "scaled_filters": Way("scaled_filters", scaled_filters, scale_known=True),
        "stated": Way("stated", as_segment, scale_known=True),
        "resampled": Way("resampled", partial(resampled, antialias=antialias), scale_known=True),
        "estimated": Way("estimated", as_segment, estimates=True),
        "pyramid": Way("pyramid", partial(pyramid, antialias=antialias), own_heads=False),
    }
    for name in names:
        check_known("way of predicting", name, WAYS)
    return tuple(ways[name] for name in WAYS if name in names)
