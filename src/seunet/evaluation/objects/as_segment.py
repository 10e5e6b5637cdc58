"""The objects of an image in memory, found by the very steps of `seunet segment`: scale, plan, tiles, objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.images.image import ArrayImage, Mpp, RgbArray
from seunet.models.unet_skeleton import ScaleUNet
from seunet.results.find_objects import Object, objects
from seunet.results.planes import LABELS, RIM
from seunet.segmentation.label_image import LabelSettings, label_image
from seunet.segmentation.one_file import frame_for
from seunet.segmentation.options import Choices, ScaleChoice, least_area
from seunet.segmentation.scale_choice import KnownScale, known_scale, plan_for
from seunet.segmentation.tiled.tile_predictor import predictor_for

USUAL = Choices()
"""What `seunet segment` does without options."""


class Found(NamedTuple):
    """Object numbers [height, width] in the image's pixels, 0 where there is none, and the scale they rest on."""

    numbers: NDArray[np.int32]
    scale: KnownScale
    relative_scale: float | None
    """How many times as large as in training structures were taken to be; None if blind."""

    @property
    def area_share(self) -> float:
        """The share of the image that objects cover."""
        return float((self.numbers > 0).mean())


def found_objects(
    rgb: RgbArray,
    model: ScaleUNet,
    mpp: float | None = None,
    choice: ScaleChoice = "auto",
    device: str = "cpu",
    min_area: str = USUAL.min_area,
) -> Found:
    """What `seunet segment` outlines in an image of this `mpp`, or of none that is stated."""
    image = ArrayImage(rgb, None if mpp is None else Mpp(mpp, mpp, "user"))
    known = known_scale(image, model, choice)
    plan = plan_for(model, known.used, image.levels)
    least = least_area(min_area, known.mpp, plan.downsample)
    network = predictor_for(model, plan.factor, plan.relative_scale is not None, USUAL.fusion, device=device)
    frame = frame_for(image, model.card, network.classes, plan)
    settings = LabelSettings(
        heads=False, tissue=USUAL.tissue and frame.background is not None, background=frame.background or 0
    )
    with TemporaryDirectory() as scratch:
        labelled = label_image(image, network, plan, Path(scratch), settings)
        with labelled.planes.opened() as planes:
            least_px = least.working_px
            found = objects(planes[LABELS], frame, split=USUAL.split, min_area_px=least_px, rim=planes.get(RIM))
            working = numbered(found, labelled.planes.size)
    return Found(in_image_pixels(working, rgb.shape[:2], plan.downsample), known, plan.relative_scale)


def numbered(found: Iterable[Object], size: tuple[int, int]) -> NDArray[np.int32]:
    """A map of the objects, numbered from 1 as they come."""
    result = np.zeros(size, dtype=np.int32)
    for number, one in enumerate(found, start=1):
        for row, start, end in one.runs.T.tolist():
            result[row, start:end] = number
    return result


def in_image_pixels(working: NDArray[np.int32], size: tuple[int, int], downsample: float) -> NDArray[np.int32]:
    """Each pixel of the image has the object that its middle lies in: what painting the outlines gives."""
    if working.shape == size and downsample == 1:
        return working
    rows, columns = (
        np.minimum((np.arange(new) + 0.5) / downsample, old - 1).astype(np.int64)
        for new, old in zip(size, working.shape, strict=True)
    )
    return working[np.ix_(rows, columns)]
