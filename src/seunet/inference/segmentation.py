"""`seunet.segment`: an image in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.data.painting import check_mpp
from seunet.errors import InputError
from seunet.inference.choices import Choices
from seunet.inference.engine import TILE_PX
from seunet.inference.heads import HeadwiseNetwork, Rectangle, tile_cores
from seunet.inference.image import ArrayImage, Mpp
from seunet.inference.magnification import Plan
from seunet.inference.slide import network, plan_for
from seunet.inference.working import WorkingImage
from seunet.limits import MAX_IMAGE_PIXELS
from seunet.maths.fusion import first_largest
from seunet.maths.rescaling import resize
from seunet.models.gaussian import SEUNet
from seunet.models.skeleton import ScaleUNet


@dataclass(frozen=True)
class Segmentation:
    """What was found, pixel by pixel of the image that was given."""

    labels: NDArray[np.uint8]
    """[H, W]: the most probable class."""
    probabilities: NDArray[np.float32]
    """[classes, H, W], sum 1."""
    confidence: NDArray[np.float32]
    """[H, W]: the largest probability less the second largest."""
    heads: NDArray[np.uint8]
    """[H, W]: the head that was the surest, from 0 (the finest)."""
    class_names: tuple[str, ...]
    plan: Plan
    """At which magnification it was analysed, and why."""


def segment(
    image: NDArray[Any],
    model: str | os.PathLike[str] | ScaleUNet = "nuclei",
    mpp: float | None = None,
    *,
    fusion: str = "p_ens",
    scale: Literal["told", "native"] = "told",
    tile_px: int | None = None,
) -> Segmentation:
    """Segment an image: uint8 [H, W, 3].

    `mpp` (µm per pixel) scales the filters to the image, or the image where that is better; without it the network
    runs on the pixels as they are and its heads carry the scale.  `model` is a name, a folder, or a model at hand.
    """
    pixels = _checked(image)
    chosen = model if isinstance(model, ScaleUNet) else network(os.fspath(model)).model
    if mpp is not None:
        check_mpp(mpp, "`mpp`", "give µm per pixel, e.g. 0.25, or leave it out")
    source = ArrayImage(pixels, None if mpp is None else Mpp(mpp, mpp, "user"))
    plan = plan_for(source, chosen, Choices(scale=scale))
    names = chosen.card.class_names if chosen.card is not None else ()
    scaled = chosen.at_scale(plan.factor) if isinstance(chosen, SEUNet) and plan.factor != 1 else chosen
    was_training = scaled.training
    try:
        found = _predicted(WorkingImage(source, plan), HeadwiseNetwork(scaled.eval(), fusion), tile_px or TILE_PX)
    finally:
        scaled.train(was_training)
    probabilities, confidence, heads = found
    height, width = pixels.shape[:2]
    if plan.resample != 1:
        probabilities, confidence = (resize(values[None], height, width)[0] for values in (probabilities, confidence))
        heads = torch.nn.functional.interpolate(heads[None].float(), (height, width), mode="nearest-exact")[0]
    return Segmentation(
        first_largest(probabilities, dim=0).to(torch.uint8).numpy(),
        probabilities.numpy(),
        confidence[0].numpy(),
        heads[0].to(torch.uint8).numpy(),
        names or tuple(f"class {code}" for code in range(chosen.classes)),
        plan,
    )


def _predicted(
    working: WorkingImage, network: HeadwiseNetwork, tile_px: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Probabilities [classes, h, w], confidence and winning heads [1, h, w] on the working raster."""
    size = working.height_px, working.width_px
    probabilities, confidence = torch.empty((network.classes, *size)), torch.empty((1, *size))
    heads = torch.empty((1, *size), dtype=torch.uint8)
    for core in tile_cores(*size, tile_px):
        seen: Rectangle = network.seen(core, *size)
        pixels = working.read(seen.columns.start, seen.rows.start, seen.columns.length, seen.rows.length)
        found = network.predict(pixels, seen, core, *size)
        place = slice(core.rows.start, core.rows.stop), slice(core.columns.start, core.columns.stop)
        probabilities[:, place[0], place[1]] = found.probabilities
        confidence[0, place[0], place[1]] = torch.from_numpy(found.confidence)
        heads[0, place[0], place[1]] = torch.from_numpy(found.winners)
    return probabilities, confidence, heads


def _checked(image: NDArray[Any]) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise InputError(f"`image` of shape {list(pixels.shape)} must be [height, width, 3]")
    if pixels.dtype != np.uint8:
        raise InputError(f"`image` of type {pixels.dtype} must be uint8, from 0 to 255")
    if pixels.shape[0] * pixels.shape[1] > MAX_IMAGE_PIXELS:
        size = f"{pixels.shape[0]}×{pixels.shape[1]}"
        raise InputError(f"`image` of {size} px is too large to be held; `seunet segment` streams files")
    return pixels
