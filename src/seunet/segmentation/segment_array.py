"""`seunet.segment`: an array in, what the network says of it out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import ArrayImage, Mpp, RgbArray
from seunet.images.overview import find_tissue
from seunet.limits import MAX_IMAGE_PIXELS
from seunet.maths.fusion import first_largest
from seunet.maths.rescaling import resize
from seunet.models.unet_skeleton import ScaleUNet
from seunet.segmentation.options import ScaleChoice
from seunet.segmentation.scale_choice import (
    KnownScale,
    ReadingPlan,
    checked_choice,
    checked_mpp,
    known_scale,
    plan_for,
)
from seunet.segmentation.tile_pixels import WorkingRaster
from seunet.segmentation.tile_predictor import predictor_for, shared_model, shared_predictor_for

BACKGROUND: Final = 0


@dataclass(frozen=True)
class Segmentation:
    """What a model says of an image, in the image's own pixels."""

    labels: NDArray[np.uint8]
    """[height, width]: the most probable class."""
    probabilities: NDArray[np.float32]
    """[classes, height, width]"""
    confidence: NDArray[np.float32]
    """[height, width]: p_max − p_second of the most confident head."""
    heads: NDArray[np.uint8]
    """[height, width]: which head that is, from the finest (0)."""
    plan: ReadingPlan
    """At which pixels the network was run, and why."""
    scale: KnownScale
    """What is known of the scale, and from where."""

    @property
    def estimated_mpp(self) -> float | None:
        """µm per pixel as estimated from the pixels; None where it was not or cannot be."""
        return None if self.scale.estimate is None else self.scale.estimate.mpp

    @property
    def relative_scale(self) -> float | None:
        """How many times as large as in training the structures are; None if that is not known."""
        return self.plan.relative_scale


def segment(
    image: NDArray[Any],
    model: str | os.PathLike[str] | ScaleUNet = "nuclei",
    mpp: float | None = None,
    *,
    scale: ScaleChoice = "auto",
    fusion: str = "auto",
    tile_px: int | None = None,
    tissue: bool = False,
) -> Segmentation:
    """Segment an image, uint8 [height, width, 3].

    Args:
        image: the pixels.
        model: the name of a built-in model, the folder of one of your own, or the model itself.
        mpp: µm per pixel.  None is no error.
        scale: "auto" uses `mpp`, else what is estimated from the pixels; where that is not possible either, the heads
            cover the scale.  "stated" uses `mpp` only; "native" leaves pixels and filters as they are.
        fusion: how the heads become one prediction: "mean", "p_dist", "p_ens", or "calibrated" where the model's card
            has a calibration.  "auto" computes the head that fits alone where the scale is known, else what the card
            says, else "p_ens".
        tile_px: the side of the tiles that are computed at a time; it changes no result.
        tissue: whether to leave glass out (images of more than 4 million pixels).
    """
    pixels = checked_pixels(image)
    source = ArrayImage(pixels, None if mpp is None else Mpp(checked_mpp(mpp), checked_mpp(mpp), "user"))
    own = isinstance(model, ScaleUNet)
    used = model if isinstance(model, ScaleUNet) else shared_model(model).model
    known = known_scale(source, used, checked_choice(scale))
    chosen = plan_for(used, known.used, source.levels)
    # A model of the caller's may change from call to call.
    make = predictor_for if own else shared_predictor_for
    network = make(used, chosen.factor, chosen.relative_scale is not None, fusion)
    raster = WorkingRaster(source, chosen)
    probabilities = np.empty((network.classes, *raster.size), dtype=np.float32)
    confidence = np.empty(raster.size, dtype=np.float32)
    heads = np.empty(raster.size, dtype=np.uint8)
    for tile in network.tiles(raster.size, tile_px):
        found = network.predict_tile(network.read(raster, tile), raster.size)
        place = slice(*tile.rows), slice(*tile.columns)
        probabilities[:, *place], confidence[place] = found.probabilities, found.confidence
        heads[place] = found.heads + np.uint8(network.only_head or 0)
    if raster.size != pixels.shape[:2]:
        probabilities, confidence, heads = _own_pixels(probabilities, confidence, heads, pixels.shape[:2])
    if tissue and (mask := _glass(source)) is not None:
        probabilities[:, mask] = 0
        probabilities[BACKGROUND, mask] = 1
        confidence[mask], heads[mask] = 0, 0
    labels = first_largest(torch.from_numpy(probabilities), dim=0).numpy().astype(np.uint8)
    return Segmentation(labels, probabilities, confidence, heads, chosen, known)


def checked_pixels(image: NDArray[Any]) -> RgbArray:
    """`image`, if it is an RGB image of bytes."""
    if not isinstance(image, np.ndarray):
        raise InputError(f"`image` is a {type(image).__name__}; give a NumPy array, uint8 [height, width, 3]")
    shape = "×".join(map(str, image.shape))
    if image.ndim != 3 or image.shape[2] != 3:
        raise InputError(f"`image` of shape {shape or '()'} must be [height, width, 3]; convert it to RGB first")
    if image.dtype != np.uint8:
        raise InputError(f"`image` of type {image.dtype} must be uint8; scale it to 0 … 255 and convert it")
    if not image.shape[0] * image.shape[1]:
        raise InputError(f"`image` of shape {shape} has no pixels")
    if image.shape[0] * image.shape[1] > MAX_IMAGE_PIXELS:
        raise InputError(f"`image` of shape {shape} is too large to be held; save it and use `seunet segment`")
    return np.ascontiguousarray(image)


def _glass(source: ArrayImage) -> NDArray[np.bool_] | None:
    found = find_tissue(source)
    if found is None:
        return None
    return ~found.mask((0, source.levels[0].height_px), (0, source.levels[0].width_px), 1.0)


def _own_pixels(
    probabilities: NDArray[np.float32], confidence: NDArray[np.float32], heads: NDArray[np.uint8], size: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8]]:
    """From the working raster back to the image's pixels: bilinear, the heads by the nearest."""
    floats = torch.from_numpy(np.concatenate([probabilities, confidence[None]]))
    resized: NDArray[np.float32] = resize(floats[None], *size, antialias=True)[0].numpy()
    rows, columns = (
        np.minimum((np.arange(new) + 0.5) * old / new, old - 1).astype(np.int64)
        for new, old in zip(size, heads.shape, strict=True)
    )
    return resized[:-1], resized[-1], heads[np.ix_(rows, columns)]
