"""The scale of a test image from its pixels alone, as for a user's image: the whole image, at the test scale.

A window is too small: 500 px at s = ¼ are 125.  Users have images and slides, so the whole image is looked at, even
where only some of its windows are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.evaluation.provenance import MPP_TOLERANCE
from seunet.images.image import RgbArray
from seunet.maths.rescaling import scaled_size
from seunet.models.heads_to_use import model_mpp
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.estimator import ScaleEstimate, ScaleEstimator, too_small
from seunet.scale.heads import Sureness
from seunet.scale.regions import Region, observe, spread_boxes
from seunet.segmentation.tiled.receptive_field import Span
from seunet.segmentation.tiled.tile_pixels import resample, resampling_taps

DIGITS = 5


def estimator_for(model: ScaleUNet, given: ScaleEstimator | None = None) -> ScaleEstimator:
    """The one that is given or that of the model's files; as for `segment`, no other stands in for it."""
    found = given or model.scale_estimator
    if found is None:
        raise InputError(
            f"this {model.name} has no scale estimator in its folder; pass --estimator nuclei, or leave --estimated out"
        )
    return found


def training_mpp(model: ScaleUNet, windows: WindowDataset) -> float:
    """At how many µm per pixel the model learnt; where its card does not say, the median of this set."""
    own = model_mpp(model)
    if own is not None:
        return own
    known = [image.mpp for image in windows.manifest.images if image.mpp is not None]
    if not known or max(known) > MPP_TOLERANCE * min(known):
        raise InputError(
            f"an estimated scale is in µm per pixel, and neither the card of this {model.name} nor the set says at "
            "how many it learnt; leave --estimated out"
        )
    return median(known)


def estimate_at(
    pixels: RgbArray,
    scale: float,
    estimator: ScaleEstimator,
    antialias: bool = False,
    sureness: Sureness | None = None,
) -> ScaleEstimate:
    """What is estimated of an image [height, width, 3] that is shown at `scale`; a region in memory at a time."""
    height, width = (scaled_size(side, scale) for side in pixels.shape[:2])
    return too_small(height, width) or estimator.estimate(_regions(pixels, (height, width), antialias, sureness))


def _regions(pixels: RgbArray, size: tuple[int, int], antialias: bool, sureness: Sureness | None) -> Iterator[Region]:
    """The regions of the rescaled image, which is never there as a whole."""
    height, width = pixels.shape[:2]
    for box in spread_boxes(*size):
        # The ratio is that of the sizes, as in `maths.rescaling`.
        rows = resampling_taps(Span(box.y, box.y + box.height_px), height, size[0] / height, antialias)
        columns = resampling_taps(Span(box.x, box.x + box.width_px), width, size[1] / width, antialias)
        top, left = int(rows.places.min()), int(columns.places.min())
        part = pixels[top : int(rows.places.max()) + 1, left : int(columns.places.max()) + 1]
        held = Span(top, top + part.shape[0]), Span(left, left + part.shape[1])
        yield observe(resample(part, held, rows, columns), sureness)


def estimate_facts(mpp: float, found: ScaleEstimate) -> dict[str, Any]:
    """What a report keeps of an estimate; `scale` is relative to `mpp`, at which the model learnt."""
    if found.mpp is None or found.mpp_interval is None:
        return {"scale": None, "low": None, "high": None, "reason": found.reason}
    low, high = found.mpp_interval
    values = {"scale": mpp / found.mpp, "low": mpp / high, "high": mpp / low}
    return {name: round(value, DIGITS) for name, value in values.items()} | {"reason": found.reason}
