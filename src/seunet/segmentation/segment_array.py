"""`seunet.segment`: an image in, what the network says of it out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.errors import InputError, RegionError
from seunet.images.image import ArrayImage, Image, Mpp
from seunet.images.overview import find_tissue
from seunet.images.sandboxed import open_guarded
from seunet.images.to_rgb import rgb_pixels
from seunet.limits import MAX_IMAGE_PIXELS
from seunet.maths.fusion import first_largest
from seunet.maths.rescaling import resize
from seunet.models.files import shared_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.segmentation.found import Segmentation
from seunet.segmentation.one_file import frame_for
from seunet.segmentation.options import ScaleChoice
from seunet.segmentation.scale_choice import checked_choice, checked_mpp, known_scale, plan_for
from seunet.segmentation.tiled.tile_pixels import WorkingRaster
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork, predictor_for, shared_predictor_for

BACKGROUND: Final = 0


def segment(
    image: Any,
    model: str | os.PathLike[str] | ScaleUNet = "nuclei",
    mpp: float | None = None,
    *,
    scale: ScaleChoice = "auto",
    fusion: str = "auto",
    tile_px: int | None = None,
    tissue: bool = False,
) -> Segmentation:
    """Segment an image.

    Args:
        image: a path to an image or slide, a PIL image, a NumPy array or torch tensor (uint8, or float in 0 … 1; grey,
            RGB or RGBA; channels last, or first where that is plain), or anything with `__array__`.
        model: the name of a built-in model, the folder of one of your own, or the model itself.
        mpp: µm per pixel.  None is no error.
        scale: "auto" uses `mpp` as far as the pixels allow, else what is estimated from them; where that is not
            possible either, the heads cover the scale.  "stated" uses `mpp` only; "native" leaves pixels and filters as
            they are.
        fusion: how the heads become one prediction: "mean", "p_dist", "p_ens", or "calibrated" where the model's card
            has a calibration.  "auto" computes the head that fits alone where the scale is known, else what the card
            says, else "p_ens".
        tile_px: the side of the tiles that are computed at a time; it changes no result.
        tissue: whether to leave glass out (images of more than 4 million pixels).
    """
    own = isinstance(model, ScaleUNet)
    used = model if isinstance(model, ScaleUNet) else shared_model(model).model
    choice = checked_choice(scale)
    pixels = image if isinstance(image, str | os.PathLike) else rgb_pixels(image)
    with opened(pixels, mpp) as source:
        known = known_scale(source, used, choice)
        chosen = plan_for(used, known.used, source.levels)
        # A model of the caller's may change from call to call.
        make = predictor_for if own else shared_predictor_for
        network = make(used, chosen.factor, chosen.relative_scale is not None, fusion)
        found = _predicted(network, WorkingRaster(source, chosen), tile_px)
        size = source.levels[0].height_px, source.levels[0].width_px
        probabilities, confidence, heads, rim = found if found[2].shape == size else _own_pixels(*found, size)
        seen = find_tissue(source) if tissue else None
        frame = frame_for(source, used.card, network.classes, replace(chosen, downsample=1.0))
    if seen is not None:
        mask = ~seen.mask((0, size[0]), (0, size[1]), 1.0)
        probabilities[:, mask] = 0
        probabilities[BACKGROUND, mask] = 1
        confidence[mask], heads[mask] = 0, 0
    labels = first_largest(torch.from_numpy(probabilities), dim=0).numpy().astype(np.uint8)
    again = partial(opened, pixels, mpp)
    return Segmentation(labels, probabilities, confidence, heads, chosen, known, frame, again, rim=rim)


Maps = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8], NDArray[np.bool_] | None]
"""Probabilities [classes, height, width]; confidence, heads and, if the model has learnt it, rim [height, width]."""


def _predicted(network: HeadwiseNetwork, raster: WorkingRaster, tile_px: int | None) -> Maps:
    """What the network says of the working pixels, tile by tile; a part that cannot be read is an error."""
    probabilities = np.empty((network.classes, *raster.size), dtype=np.float32)
    confidence = np.empty(raster.size, dtype=np.float32)
    heads = np.empty(raster.size, dtype=np.uint8)
    rim = None if network.rim is None else np.empty(raster.size, dtype=np.bool_)
    for tile in network.tiles(raster.size, tile_px):
        given = network.read(raster, tile)
        if given.part.gaps:
            raise RegionError(f"{given.part.gaps[0].reason}; `seunet segment` marks such parts and does the rest")
        found = network.predict_tile(given, raster.size)
        place = slice(*tile.rows), slice(*tile.columns)
        probabilities[:, *place], confidence[place] = found.probabilities, found.confidence
        heads[place] = found.heads + np.uint8(network.only_head or 0)
        if rim is not None:
            rim[place] = found.rim
    return probabilities, confidence, heads, rim


@contextmanager
def opened(image: Any, mpp: float | None) -> Iterator[Image]:
    """The image of a path, read in a process of its own, or of what is in memory."""
    user_mpp = None if mpp is None else checked_mpp(mpp)
    if isinstance(image, str | os.PathLike):
        with closing(open_guarded(Path(image), user_mpp)) as file:
            width_px, height_px, _ = file.levels[0]
            if width_px * height_px > MAX_IMAGE_PIXELS:
                raise InputError(
                    f"{file.name}: {width_px}×{height_px} px are too many to be held; use `seunet segment`"
                )
            yield file
        return
    yield ArrayImage(rgb_pixels(image), None if user_mpp is None else Mpp(user_mpp, user_mpp, "user"))


def _own_pixels(
    probabilities: NDArray[np.float32],
    confidence: NDArray[np.float32],
    heads: NDArray[np.uint8],
    rim: NDArray[np.bool_] | None,
    size: tuple[int, int],
) -> Maps:
    """From the working raster back to the image's pixels: bilinear, heads and rim by the nearest."""
    floats = torch.from_numpy(np.concatenate([probabilities, confidence[None]]))
    resized: NDArray[np.float32] = resize(floats[None], *size, antialias=True)[0].numpy()
    return resized[:-1], resized[-1], _nearest(heads, size), None if rim is None else _nearest(rim, size)


def _nearest(plane: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    """A plane in so many rows and columns, each pixel that of the nearest."""
    rows, columns = (
        np.minimum((np.arange(new) + 0.5) * old / new, old - 1).astype(np.int64)
        for new, old in zip(size, plane.shape, strict=True)
    )
    return plane[np.ix_(rows, columns)]
