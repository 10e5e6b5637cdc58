"""At which pixels a model is run: the pyramid level that is read, by how much it is resampled, and σ × what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seunet.errors import InputError
from seunet.images.image import Level, Mpp
from seunet.limits import MPP_RANGE
from seunet.models.heads_to_use import DEFAULT_RANGE
from seunet.segmentation.scale_plan import Working, is_same, working_pixels


@dataclass(frozen=True)
class Plan:
    """What is read and how the network is set.  All numbers count along the side of a pixel."""

    level: int
    """The pyramid level that is read."""
    resample: float
    """Working pixels in one of that level; 1 leaves the pixels alone."""
    factor: float
    """What every σ is multiplied by."""
    relative_scale: float | None
    """How many times as large as in training structures are in level 0; None if that is not known."""
    downsample: float
    """Level-0 pixels in a working pixel."""
    reason: str
    """A sentence."""


def plan(
    slide_mpp: Mpp | None,
    levels: Sequence[Level],
    model_mpp: float | None,
    filter_range: tuple[float, float] = DEFAULT_RANGE,
) -> Plan:
    """How a slide of this resolution is given to a model trained at `model_mpp` (`maths.magnification`).

    Any resolution is taken as it is, never rounded to that of a level.
    """
    if slide_mpp is None or model_mpp is None:
        whose = "the image's" if slide_mpp is None else "the model's"
        reason = f"{whose} mpp is not known: the pixels are taken as they are and the heads carry the scale"
        return Plan(0, 1.0, 1.0, None, 1.0, reason)
    for value in slide_mpp[:2]:
        checked_mpp(value)
    mpp = slide_mpp.mean
    scale = checked_mpp(model_mpp) / mpp
    found = working_pixels(scale, [level.downsample for level in levels], filter_range)
    source = ", estimated," if slide_mpp.source == "estimated" else ""
    known = f"{mpp:.4g} µm/px{source} where the model was trained at {model_mpp:.4g}"
    downsample = levels[found.level].downsample
    reason = f"{known}: {_how(found, downsample)}"
    return Plan(found.level, found.resample, found.factor, scale, downsample / found.resample, reason)


def checked_mpp(mpp: float) -> float:
    """`mpp`, if a light microscope can give it."""
    lowest, highest = MPP_RANGE
    if isinstance(mpp, bool) or not isinstance(mpp, int | float) or not lowest <= mpp <= highest:
        raise InputError(f"mpp {mpp!r}: must be a number of µm per pixel from {lowest:g} to {highest:g}")
    return float(mpp)


def _how(found: Working, downsample: float) -> str:
    """What is done with the pixels and the filters, in words."""
    level = "level 0" if found.level == 0 and found.resample > 1 else f"level {found.level} (1/{downsample:.4g})"
    if found.resample == 1:
        if found.level > 0:
            return f"{level} is read as it is, every σ × {found.factor:.4g}"
        as_they_are = "the pixels and the filters are taken as they are"
        return as_they_are if found.factor == 1 else f"the pixels are left alone, every σ × {found.factor:.4g}"
    if found.resample < 1:
        return f"{level} is shrunk × {found.resample:.4g} to the training scale"
    enlarged = f"{level} is enlarged × {found.resample:.4g}"
    if found.factor != 1:
        return f"{enlarged}, every σ × {found.factor:.4g}"
    if is_same(found.reached, 1):
        return f"{enlarged} to the training scale"
    return f"{enlarged} and structures are still × {found.reached:.2g}: expect little"
