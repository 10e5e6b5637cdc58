"""`seunet.segment`: an image in, what the network says of it out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.errors import InputError, RegionError
from seunet.images.image import ArrayImage, Image, Mpp
from seunet.images.overview import Tissue, find_tissue
from seunet.images.sandboxed import open_guarded
from seunet.images.to_rgb import rgb_pixels
from seunet.limits import MAX_IMAGE_PIXELS
from seunet.maths.fusion import first_largest
from seunet.maths.rescaling import resize
from seunet.maths.stain import haematoxylin_density
from seunet.models.files import shared_model
from seunet.models.unet_skeleton import ScaleUNet
from seunet.results.frame import Frame
from seunet.results.label_plane import ArrayPlane
from seunet.results.planes import plane_names, tile_blocks
from seunet.segmentation.found import Segmentation
from seunet.segmentation.one_file import frame_for
from seunet.segmentation.options import ScaleChoice
from seunet.segmentation.scale_choice import checked_choice, checked_mpp, known_scale, plan_for
from seunet.segmentation.tiled.tile_pixels import WorkingRaster
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork, predictor_for, shared_predictor_for


def segment(
    image: Any,
    model: str | os.PathLike[str] | ScaleUNet = "nuclei",
    mpp: float | None = None,
    *,
    scale: ScaleChoice = "auto",
    fusion: str = "auto",
    tile_px: int | None = None,
    tissue: bool = True,
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
        frame = frame_for(source, used.card, network.classes, chosen)
        # Without a background there is no label for glass: all of it is analysed.
        seen = find_tissue(source) if tissue and frame.background is not None else None
        found, planes = _predicted(network, WorkingRaster(source, chosen), tile_px, seen, frame)
        size = source.levels[0].height_px, source.levels[0].width_px
        probabilities, confidence, heads, rim = found if found.heads.shape == size else _own_pixels(found, size)
        for line in (*source.warnings, *([known.conflict] if known.conflict else [])):
            warnings.warn(line, stacklevel=2)
    if seen is not None:
        mask = ~seen.mask((0, size[0]), (0, size[1]), 1.0)
        probabilities[:, mask] = 0
        probabilities[frame.background, mask] = 1
        confidence[mask], heads[mask] = 0, 0
    labels = first_largest(torch.from_numpy(probabilities), dim=0).numpy().astype(np.uint8)
    again = partial(opened, pixels, mpp)
    return Segmentation(labels, probabilities, confidence, heads, chosen, known, frame, again, planes, rim=rim)


class Maps(NamedTuple):
    """What a network says of each pixel, in its own numbers."""

    probabilities: NDArray[np.float32]
    """[classes, height, width]"""
    confidence: NDArray[np.float32]
    heads: NDArray[np.uint8]
    rim: NDArray[np.bool_] | None


def _predicted(
    network: HeadwiseNetwork, raster: WorkingRaster, tile_px: int | None, tissue: Tissue | None, frame: Frame
) -> tuple[Maps, dict[str, ArrayPlane]]:
    """What the network says of the working pixels, tile by tile, and the planes that `seunet segment` makes of it.

    A part that cannot be read is an error.
    """
    probabilities = np.empty((network.classes, *raster.size), dtype=np.float32)
    confidence = np.empty(raster.size, dtype=np.float32)
    heads = np.empty(raster.size, dtype=np.uint8)
    rim = None if network.rim is None else np.empty(raster.size, dtype=np.bool_)
    names = plane_names(network.classes, heads=False, rim=rim is not None, measured=True, probabilities=False)
    planes = {name: np.empty(raster.size, dtype=np.uint8) for name in names}
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
        whole = np.ones(found.labels.shape, dtype=np.bool_)
        analysed = whole if tissue is None else tissue.mask(tile.rows, tile.columns, frame.scale_to_level0)
        density = haematoxylin_density(given.own_pixels)
        for name, block in tile_blocks(found, names, analysed, ~whole, frame.background or 0, density).items():
            planes[name][place] = block
    said = Maps(probabilities, confidence, heads, rim)
    return said, {name: ArrayPlane(plane) for name, plane in planes.items()}


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


def _own_pixels(found: Maps, size: tuple[int, int]) -> Maps:
    """From the working raster back to the image's pixels: bilinear, heads and rim by the nearest."""
    floats = torch.from_numpy(np.concatenate([found.probabilities, found.confidence[None]]))
    resized: NDArray[np.float32] = resize(floats[None], *size, antialias=True)[0].numpy()
    rim = None if found.rim is None else _nearest(found.rim, size)
    return Maps(resized[:-1], resized[-1], _nearest(found.heads, size), rim)


def _nearest(plane: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    """A plane in so many rows and columns, each pixel that of the nearest."""
    rows, columns = (
        np.minimum((np.arange(new) + 0.5) * old / new, old - 1).astype(np.int64)
        for new, old in zip(size, plane.shape, strict=True)
    )
    return plane[np.ix_(rows, columns)]
